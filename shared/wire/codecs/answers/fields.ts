import { z } from 'zod'
import type { JsonObject } from '../../model/task.ts'
import { wireForms } from '../wire-form.ts'

/** Fields of several answers. */

export const time = z.iso.datetime({ offset: true })

export const jsonValue = z.unknown().describe('Any JSON value')

export const jsonObject = z.looseObject({})

/** A JSON object of the model. */
export const jsonMap = z.custom<JsonObject>().register(wireForms, { schema: { type: 'object' } })
