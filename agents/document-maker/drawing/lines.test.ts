import { expect, test } from 'vitest'
import type { Span } from '../document.ts'
import { breakLines, extent, type Measure } from './lines.ts'

/** Every character is one unit wide. */
const even: Measure = {
  measure: (text) => text.length,
  runsOf: (text, face) => [{ text, face }],
}
const lines = (spans: Span[] | string, width: number): string[] =>
  breakLines(typeof spans === 'string' ? [{ text: spans }] : spans, width, 10, even).map(({ runs }) =>
    runs.map((run) => run.text).join('|'),
  )

test.each([
  ['one two three', 7, ['one two', 'three']],
  ['one  \n two', 20, ['one two']],
  ['well-known thing', 6, ['well-', 'known', 'thing']],
  ['a/b/c', 3, ['a/', 'b/c']],
  ['abcdefghij', 4, ['abcd', 'efgh', 'ij']],
  ['ab cdefghij', 4, ['ab', 'cdef', 'ghij']],
  ['漢字漢字', 3, ['漢字漢', '字']],
  ['no\u00A0break', 5, ['no\u00A0br', 'eak']],
  ['', 10, []],
  ['   ', 10, []],
])('%j in %i is %j', (text, width, broken) => {
  expect(lines(text, width)).toEqual(broken)
})

test('does not break a word with several styles', () => {
  expect(lines([{ text: 'see ' }, { text: 'bold', bold: true }, { text: ', then' }], 6)).toEqual(
    ['see ', 'bold|,', 'then'].map((line) => line.trim()),
  )
})

test('a forced break starts a new line, even if the line is empty', () => {
  expect(lines([{ text: 'a' }, { text: '\n' }, { text: '\n' }, { text: 'b' }], 10)).toEqual(['a', '', 'b'])
})

test('no line exceeds its width, and no text is lost', () => {
  const text = 'Lorem ipsum dolor sit amet, consectetur-adipiscing elit/sed donaudampfschifffahrt'
  for (let width = 1; width < 60; width += 1) {
    const broken = breakLines([{ text }], width, 10, even)
    for (const line of broken) expect(line.width).toBeLessThanOrEqual(width)
    const all = broken.map(({ runs }) => runs.map((run) => run.text).join('')).join('')
    expect(all.replaceAll(' ', '')).toBe(text.replaceAll(' ', ''))
  }
})

test('the extent gives the widths of the longest word and of the whole line', () => {
  expect(extent([{ text: 'one three' }, { text: '\n' }, { text: 'a' }], 10, even)).toEqual({
    least: 5,
    most: 9,
  })
})
