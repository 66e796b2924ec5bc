import { stripVTControlCharacters } from 'node:util'

// Matches C0 except tab and line break, DEL, C1, and bidirectional control characters, which can disguise a name.
// oxlint-disable-next-line no-control-regex -- the expression removes control characters
const hostile = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/**
 * Makes untrusted text safe for a terminal: removes escape sequences and control characters, so that it cannot move
 * the cursor, set the title or clipboard, or disguise itself.
 */
export function printable(text: string): string {
  return stripVTControlCharacters(text).replaceAll(hostile, '')
}

/** The maximum length of an agent's slug. A shortened name could not be copied into a command. */
export const slugMax = 63

/** Writes the control characters that JSON may contain as they are, such as C1, as escapes. The value is the same. */
export function printableJson(json: string): string {
  return json.replaceAll(hostile, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

/** Like `printable`, but on one line of at most `max` characters, for tables and sentences. */
export function oneLine(text: string, max = 200): string {
  const line = printable(text).replaceAll(/\s+/g, ' ').trim()
  return line.length > max ? `${line.slice(0, max - 1)}…` : line
}
