import { expect, test } from 'vitest'
import { press } from './press.ts'

const job = (markdown: string) => ({ markdown, attachments: [], wishes: {} })

test('typesets a document in a thread', async () => {
  const answer = await press(job('# Hello'), new AbortController().signal)
  expect(answer).toMatchObject({ made: { name: 'Hello', pages: 1 } })
  expect(Buffer.from('made' in answer ? answer.made.pdf : '').toString('latin1')).toMatch(
    /^%PDF[^]*%%EOF\s*$/,
  )
})

test('cancelling terminates a busy thread', async () => {
  const stop = new AbortController()
  const pressing = press(job('['.repeat(1_500_000)), stop.signal)
  setTimeout(() => stop.abort(new Error('canceled')), 300)
  await expect(pressing).rejects.toThrow('canceled')
  await expect(press(job('x'), stop.signal)).rejects.toThrow('canceled')
})

test.each([
  ['quotations', '> '.repeat(500_000)],
  ['lists', '- '.repeat(500_000)],
  ['lists and quotations', '> - 1. '.repeat(200_000)],
  ['indented lists', Array.from({ length: 1000 }, (_, depth) => `${'  '.repeat(depth)}- x`).join('\n')],
])('typesets endlessly nested %s', async (_, markdown) => {
  const answer = await press(job(markdown), new AbortController().signal)
  expect(answer).toMatchObject({ made: { pdf: expect.any(Uint8Array) as Uint8Array } })
})
