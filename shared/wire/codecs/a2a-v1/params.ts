import { z } from 'zod'
import { ParleyError } from '../../errors.ts'
import { isObject } from '../../jsonrpc/envelope.ts'
import type { SendMessage } from '../../model/call.ts'
import type { Ids } from '../../model/ids.ts'
import { parseParams } from '../parley/params.ts'
import { id, messageIn, optionalId, struct, taskIdOf, toMessage } from './message.ts'
import { fieldOf, int32, optionalText, protoObject, time } from './proto-json.ts'
import { pushConfigFields, pushConfigIn, toPushConfig } from './push-config.ts'
import { stateIn } from './states.ts'

const historyLength = int32(0).optional()
const pageToken = optionalText(1024)

export const sendMessageIn = protoObject({
  message: messageIn,
  configuration: protoObject({
    acceptedOutputModes: z.array(z.string().max(256)).max(100).optional(),
    taskPushNotificationConfig: pushConfigIn.optional(),
    historyLength,
    returnImmediately: z.boolean().optional(),
  }).optional(),
  metadata: struct.optional(),
})

export const taskIn = protoObject({ id })
export const getTaskIn = protoObject({ id, historyLength })
export const listTasksIn = protoObject({
  contextId: optionalId,
  status: stateIn.optional(),
  pageSize: int32(1, 100).default(50),
  pageToken,
  historyLength,
  statusTimestampAfter: time.optional(),
  includeArtifacts: z.boolean().default(false),
})
export const noParams = protoObject({})

export const createPushConfigIn = protoObject({ ...pushConfigFields, taskId: id })
export const pushConfigOfTask = protoObject({ taskId: id, id })
/** A page size of 0 means the default. */
export const listPushConfigsIn = protoObject({ taskId: id, pageSize: int32(0).default(0), pageToken })

/** The answer waits for the end or a pause of the task by default. @throws ParleyError TaskNotFound */
export function toSendMessage(
  { message, configuration = {} }: z.output<typeof sendMessageIn>,
  ids: Ids,
): SendMessage {
  const { acceptedOutputModes: modes = [], taskPushNotificationConfig: config } = configuration
  return {
    message: toMessage(message, ids),
    continues: true,
    pausesUnpaid: true,
    configuration: {
      acceptedOutputModes: modes.length === 0 ? undefined : modes,
      // The webhook survives a restart of the server.
      longRunning: config === undefined ? undefined : true,
      pushNotificationConfig: config && toPushConfig(config, ids),
      wait: configuration.returnImmediately !== true,
      historyLength: configuration.historyLength,
    },
  }
}

/** The task ID is in `id`, or in `taskId` if the subject is a webhook of the task. */
const ofTask = protoObject({ taskId: optionalId, id: optionalId })

/** @throws ParleyError InvalidParams, TaskNotFound */
export function readTaskId(params: Record<string, unknown>): string {
  const { taskId, id: ownId } = parseParams(ofTask, params)
  const given = taskId ?? ownId
  if (given !== undefined) return taskIdOf(given)
  throw new ParleyError('InvalidParams', { data: { issues: [{ path: 'id', message: 'is missing' }] } })
}

const tenantIn = protoObject({ tenant: optionalText(256) })

/** @throws ParleyError InvalidParams */
export function readTenant(params: Record<string, unknown>): string | undefined {
  return parseParams(tenantIn, params).tenant
}

/** The fields are in the metadata of the request or of the message, the parts of a request that a client can extend. */
export function readQuery({ metadata, message }: Record<string, unknown>): unknown {
  const places = [metadata, isObject(message) ? message['metadata'] : undefined]
  return places.map((place) => (isObject(place) ? place['negotiation'] : undefined)).find(Boolean)
}

export function readCursor(params: Record<string, unknown>): unknown {
  const cursor = fieldOf(params, 'pageToken')
  return cursor === '' ? undefined : cursor
}

export function writeCursor(
  { pageToken: _camel, page_token: _snake, ...params }: Record<string, unknown>,
  cursor: string | undefined,
): Record<string, unknown> {
  return cursor === undefined ? params : { ...params, pageToken: cursor }
}
