import { cleanLine } from '@parley/wire/model/clean-text'

/** Returns clean lines of at most `maxChars` characters each, without empty and repeated ones. */
export function cleanLines(texts: readonly string[], maxChars: number): string[] {
  return [...new Set(texts.map((text) => cleanLine(text, maxChars)))].filter((line) => line !== '')
}
