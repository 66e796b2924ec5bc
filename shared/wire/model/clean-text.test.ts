import { expect, test } from 'vitest'
import { cleanLine, cleanObject, cleanText } from './clean-text.ts'

test.each([
  ['a colour', '\u001B[31mred\u001B[0m', 'red'],
  ['a title of the terminal', '\u001B]0;owned\u0007text', 'text'],
  ['an unfinished sequence', 'text\u001B[', 'text'],
  ['control characters', 'a\u0000b\u0007c\u009Bm', 'abc'],
  ['a change of direction', 'safe\u202Eexe.txt', 'safeexe.txt'],
  ['invisible characters', 'a\u200B\u{E0041}\u{E0042}b', 'ab'],
])('%s is removed from a text', (_what, text, clean) => {
  expect(cleanText(text)).toBe(clean)
})

test('line breaks, tabs, emoji and other scripts remain in a text', () => {
  const text = 'línea 1\n\t日本語 👩‍💻 שלום'
  expect(cleanText(text)).toBe(text)
})

test('a line is short and has no line breaks', () => {
  expect(cleanLine('one\r\n two\u001B[2J three', 9)).toBe('one two …')
})

test('the strings and keys of an object are cleaned', () => {
  expect(cleanObject({ 'a\u001B[1m': ['\u0000b', { c: 1 }] })).toEqual({ a: ['b', { c: 1 }] })
})
