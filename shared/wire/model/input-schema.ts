import { isJsonObject } from './json-text.ts'
import type { JsonObject, JsonValue } from './task.ts'

/** The bounds of a JSON Schema that describes the input of a skill. */
export const schemaMaxChars = 32 * 1024
const depthMax = 24

/**
 * Returns why a registry does not keep the JSON Schema of a skill's input, as the end of a sentence about the schema; undefined
 * if it does. References may lead to other parts of the schema only, so that no reader loads anything.
 */
export function faultOfInputSchema(schema: unknown): string | undefined {
  if (!isJsonObject(schema)) return 'is not an object'
  if (schema['type'] !== 'object') return 'does not describe an object'
  return (
    faultWithin(schema, 0) ?? (isTooLong(schema) ? `is longer than ${schemaMaxChars} characters` : undefined)
  )
}

/** Returns the schema if a registry keeps it. */
export function keptInputSchema(schema: unknown): JsonObject | undefined {
  return isJsonObject(schema) && faultOfInputSchema(schema) === undefined ? schema : undefined
}

const isTooLong = (schema: JsonObject) => JSON.stringify(schema).length > schemaMaxChars

const references = new Set(['$ref', '$dynamicRef', '$recursiveRef'])

function faultWithin(value: JsonValue, depth: number): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  if (depth === depthMax) return `is nested deeper than ${depthMax} levels`
  for (const [key, child] of Object.entries(value)) {
    if (references.has(key) && typeof child === 'string' && !child.startsWith('#'))
      return 'refers to another document'
    const fault = faultWithin(child, depth + 1)
    if (fault !== undefined) return fault
  }
  return undefined
}
