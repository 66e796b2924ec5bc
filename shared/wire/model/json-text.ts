import type { JsonObject } from './task.ts'

/** The value of a JSON text; undefined when it is not JSON. The message of the parser is dropped, because it quotes the text. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The object in a JSON text; undefined for any other text. */
export function jsonObjectOf(text: string): JsonObject | undefined {
  const value = jsonOf(text)
  return isJsonObject(value) ? value : undefined
}

/** @param value parsed JSON; nested values are not checked */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
