import { z } from 'zod'

/** What the JSON Schema of a zod schema says where zod cannot derive it. The OpenAPI document reads it. */
export interface WireForm {
  /** Replaces the JSON Schema. */
  schema?: Readonly<Record<string, unknown>>
  /** The names of the fields on the wire, by the names in the schema. */
  names?: Readonly<Record<string, string>>
}

export const wireForms = z.registry<WireForm>()
