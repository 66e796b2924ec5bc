import { stripVTControlCharacters } from 'node:util'

/**
 * Matches control characters, characters that reorder text and characters that are not displayed, such as Unicode tags. They can
 * disguise a name or carry instructions to a model. The joiner of emoji is kept.
 */
const hidden =
  // oxlint-disable-next-line no-control-regex -- the expression removes control characters
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\u{e0000}-\u{e007f}]/gu

/** Returns text of an agent as one line of at most `max` characters, which is safe to display. */
export function plainLine(text: string, max: number): string {
  // Only the beginning of a long text is read.
  const line = stripVTControlCharacters(
    text
      .slice(0, 4 * max)
      .toWellFormed()
      .replaceAll(/\s+/g, ' '),
  )
    .replaceAll(hidden, '')
    .replaceAll(/ {2,}/g, ' ')
    .trim()
  return line.length > max
    ? `${line
        .slice(0, max - 1)
        .toWellFormed()
        .trimEnd()}…`
    : line
}

/** Returns the lines without empty and repeated ones. */
export function plainLines(texts: readonly string[], max: number): string[] {
  return [...new Set(texts.map((text) => plainLine(text, max)))].filter((line) => line !== '')
}
