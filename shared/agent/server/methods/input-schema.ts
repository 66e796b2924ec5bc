import { faultOfInputSchema } from '@parley/wire/model/input-schema'
import { isJsonObject } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import { z } from 'zod'
import type { Skill } from '../../author/agent.ts'

/** The JSON Schema of a skill's input, or the reason for which the agent publishes none. */
export type PublishedInput = { schema: JsonObject } | { fault: string }

const published = new WeakMap<object, PublishedInput>()

/** Returns undefined for a skill without a schema. Types that JSON Schema lacks accept any value in the schema. */
export function publishedInput({
  input,
  inputSchema,
}: Pick<Skill, 'input' | 'inputSchema'>): PublishedInput | undefined {
  if (input === undefined) return inputSchema && checked(inputSchema)
  const known = published.get(input) ?? publish(input)
  published.set(input, known)
  return known
}

export function inputSchemaOf(skill: Pick<Skill, 'input' | 'inputSchema'>): JsonObject | undefined {
  const result = publishedInput(skill)
  return result !== undefined && 'schema' in result ? result.schema : undefined
}

function publish(input: z.ZodType): PublishedInput {
  let json: unknown
  try {
    json = z.toJSONSchema(input, { io: 'input', unrepresentable: 'any' })
  } catch {
    return { fault: 'cannot be written as JSON Schema' }
  }
  if (!isJsonObject(json)) return { fault: 'is not an object' }
  // The input of a skill is always an object, which a union does not state.
  const isUnion = json['anyOf'] !== undefined || json['oneOf'] !== undefined || json['allOf'] !== undefined
  const schema: JsonObject = isUnion && json['type'] === undefined ? { ...json, type: 'object' } : json
  return checked(schema)
}

function checked(schema: JsonObject): PublishedInput {
  const fault = faultOfInputSchema(schema)
  return fault === undefined ? { schema } : { fault }
}
