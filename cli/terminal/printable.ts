import { stripVTControlCharacters } from 'node:util'

// C0 without tab and line break, DEL, C1, and the marks that turn the reading direction (they can disguise a name).
// oxlint-disable-next-line no-control-regex -- taking these out is the purpose
const hostile = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g

/**
 * Text from elsewhere for a terminal: no escape sequence and no control character is left, so that it can neither move
 * the cursor, set the title or clipboard, nor look like something else.
 */
export function printable(text: string): string {
  return stripVTControlCharacters(text).replaceAll(hostile, '')
}

/** The same on one line, at most `max` characters, for tables and sentences. */
export function oneLine(text: string, max = 200): string {
  const line = printable(text).replaceAll(/\s+/g, ' ').trim()
  return line.length > max ? `${line.slice(0, max - 1)}…` : line
}
