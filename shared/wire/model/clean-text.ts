import { isObject } from '../jsonrpc/envelope.ts'
import type { JsonObject, JsonValue } from './task.ts'

/** Escape sequences of terminals: CSI, OSC (with its text) and the others, which have two characters. */
const escapeSequences =
  // oxlint-disable-next-line eslint/no-control-regex -- the sequences begin and end with control characters
  /\u001B(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\u0007\u001B\u009C]*(?:\u0007|\u001B\\|\u009C)?|[ -~])|\u009B[0-?]*[ -/]*[@-~]?/g

/**
 * Control characters except tab and line breaks, characters that change the direction of the following text, and
 * invisible characters, in which instructions to a model can be hidden.
 */
const unsafeCharacters =
  /(?![\t\n\r])\p{Cc}|\p{Bidi_Control}|[\u200B\u2028\u2029\u2060-\u206F\uFEFF\uFFF9-\uFFFB]|[\u{E0000}-\u{E0FFF}]/gu

const isUnsafe = new RegExp(unsafeCharacters.source, 'u')

/** Whether `cleanText` would change the text. */
export function hasUnsafeCharacters(text: string): boolean {
  return isUnsafe.test(text)
}

/** Removes escape sequences, control characters and invisible characters from a text of an agent. */
export function cleanText(text: string): string {
  return isUnsafe.test(text) ? text.replace(escapeSequences, '').replace(unsafeCharacters, '') : text
}

/** Returns a clean text in one line, of at most `maxChars` characters. */
export function cleanLine(text: string, maxChars: number): string {
  return clipped(
    cleanText(text.slice(0, 4 * maxChars).toWellFormed())
      .replace(/\s+/g, ' ')
      .trim(),
    maxChars,
  )
}

/** Truncates the text and marks the end if it was truncated. */
export function clipped(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `${text.slice(0, maxChars - 1).replace(/[\uD800-\uDBFF]$/, '')}…`
}

/** Cleans all strings of a value, including the keys of objects. */
export function cleanJson(value: JsonValue): JsonValue {
  if (typeof value === 'string') return cleanText(value)
  if (Array.isArray(value)) return value.map((item) => cleanJson(item))
  return isObject(value) ? cleanObject(value as JsonObject) : value
}

export function cleanObject(value: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [cleanText(key), cleanJson(item)]))
}
