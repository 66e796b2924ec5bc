import type { JsonObject } from './task.ts'

/** What a JSON text says; undefined when it is none. The parser's message, which quotes the text, goes nowhere. */
export function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The object that a JSON text says; undefined for anything else. */
export function jsonObjectOf(text: string): JsonObject | undefined {
  const value = jsonOf(text)
  return isJsonObject(value) ? value : undefined
}

/** @param value parsed JSON; nested values are not checked */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
