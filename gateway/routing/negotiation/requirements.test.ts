import type { IncomingMessage } from '@parley/wire/model/call'
import { expect, test } from 'vitest'
import { textOf } from './requirements.ts'

const message = (...texts: string[]) =>
  ({ parts: texts.map((text) => ({ kind: 'text', text })) }) as unknown as IncomingMessage

test('a long text keeps its beginning and its end, where the instruction is', () => {
  const text = `Sum this up.\n${'word '.repeat(20_000)}\nIn three sentences, please.`
  const read = textOf(message(text))
  expect(read.length).toBeLessThanOrEqual(10_000)
  expect([read.slice(0, 12), read.slice(-27)]).toEqual(['Sum this up.', 'In three sentences, please.'])
})

test('the instruction may be a part before or after a long one', () => {
  const long = 'word '.repeat(20_000)
  expect(textOf(message('Sum this up.', long)).startsWith('Sum this up.\nword')).toBe(true)
  expect(textOf(message(long, 'Sum this up.')).endsWith('word \nSum this up.')).toBe(true)
})

test('a text of 10,000 characters is read as a whole', () => {
  const text = 'x'.repeat(10_000)
  expect(textOf(message(text))).toBe(text)
})
