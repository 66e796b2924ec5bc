import { expect, test } from 'vitest'
import { oneLine, printable, printableJson } from './printable.ts'

test.each([
  ['colours', '\u001b[31mred\u001b[0m', 'red'],
  ['a new window title', 'a\u001b]0;owned\u0007b', 'ab'],
  ['an escape that was cut in two', 'a\u001b', 'a'],
  ['an 8-bit escape', 'a\u009b2Jb', 'ab'],
  ['a line that overwrites itself', 'good\rbad', 'goodbad'],
  ['backspaces', 'x\b\by', 'xy'],
  ['text that turns around', 'a\u202etxt.exe', 'atxt.exe'],
  ['NUL and bell', '\u0000\u0007', ''],
  ['line breaks, tabs and other alphabets', 'é\n\tž 日本 🎉', 'é\n\tž 日本 🎉'],
])('no control sequence remains in %s', (_, text, harmless) => {
  expect(printable(text)).toBe(harmless)
})

test('a table cell stays on one line and within its width', () => {
  expect(oneLine(' a\n\n b\t c ')).toBe('a b c')
  expect(oneLine('x'.repeat(500), 10)).toBe(`${'x'.repeat(9)}…`)
})

test('JSON for a terminal has no control characters and the same value', () => {
  const value = { name: 'a\u009b2Jb\u202etxt\u001b[2J' }
  const json = printableJson(JSON.stringify(value))
  expect(json).toBe('{"name":"a\\u009b2Jb\\u202etxt\\u001b[2J"}')
  expect(JSON.parse(json)).toEqual(value)
})
