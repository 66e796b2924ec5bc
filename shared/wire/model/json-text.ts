import type { JsonObject } from './task.ts'

/** Parses JSON text; returns undefined if it is not JSON. The parser's message is dropped because it quotes the text. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Parses the text of a JSON object; returns undefined for any other text. */
export function jsonObjectOf(text: string): JsonObject | undefined {
  const value = jsonOf(text)
  return isJsonObject(value) ? value : undefined
}

/** @param value parsed JSON; nested values are not checked */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
