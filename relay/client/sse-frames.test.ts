import { expect, test } from 'vitest'
import { InvalidAgentAnswer } from './agent-errors.ts'
import { sseFrames } from './sse-frames.ts'

const limits = { frameMaxChars: 1000, framesMax: 100, streamMaxBytes: 1_000_000 }

async function framesOf(...pieces: string[]): Promise<string[]> {
  const body = (async function* () {
    for (const piece of pieces) yield Buffer.from(piece)
  })()
  return Array.fromAsync(sseFrames(body, limits))
}

test.each([
  ['line feeds', ['data: a\ndata: b\n\ndata: c\n\n']],
  ['carriage returns', ['data: a\rdata: b\r\rdata: c\r\r']],
  ['both', ['data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n']],
  ['both in two pieces', ['data: a\r', '', '\ndata: b\r\n\r', '\ndata: c\r\n', '\r\n']],
  ['comments and other fields', [': hi\nid: 1\nevent: x\ndata: a\ndata: b\n\nother: 1\ndata: c\n\n']],
])('lines end with %s', async (_name, pieces) => {
  expect(await framesOf(...pieces)).toEqual(['a\nb', 'c'])
})

test('a stream of other lines is refused before it has been parsed', async () => {
  await expect(framesOf('x\n'.repeat(2000))).rejects.toThrow(InvalidAgentAnswer)
  await expect(framesOf('retry: x\n'.repeat(2000))).rejects.toThrow(InvalidAgentAnswer)
  expect(await framesOf(`${':\n'.repeat(5000)}data: a\n\n`)).toEqual(['a'])
})
