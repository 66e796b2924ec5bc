import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { Embeddings } from './embeddings.ts'

async function endpoint(answer: RequestListener) {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/embeddings`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

test('each text is sent once, in batches of 64, and vectors have length 1', async () => {
  const batches: number[] = []
  await using server = await endpoint((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => {
      body += chunk.toString()
    })
    request.on('end', () => {
      const { input, model } = JSON.parse(body) as { input: string[]; model: string }
      expect([model, request.headers.authorization]).toEqual(['m', 'Bearer k'])
      batches.push(input.length)
      const data = input.map((text, index) => ({ index, embedding: [text.length, 0] }))
      response.end(JSON.stringify({ data: data.reverse() }))
    })
  })
  const embeddings = new Embeddings({ url: server.url, model: 'm', key: 'k' })
  const texts = Array.from({ length: 100 }, (_, at) => `text ${at}`)
  const first = await embeddings.embed(texts)
  await embeddings.embed([...texts, 'one more'])
  expect(batches).toEqual([64, 36, 1])
  expect('vectors' in first && first.vectors[99]).toEqual(new Float32Array([1, 0]))
})

test.each<[string, RequestListener, string]>([
  ['an error', (_request, response) => response.writeHead(500).end(), 'answered 500'],
  ['no JSON', (_request, response) => response.end('<html>'), 'is invalid'],
  ['too few vectors', (_request, response) => response.end('{"data":[]}'), 'omitted texts'],
  ['a redirect', (_request, response) => response.writeHead(302, { location: '/' }).end(), 'unreachable'],
  ['silence', () => undefined, 'timed out'],
])('an endpoint that answers %s yields a reason instead of vectors', async (_name, answer, reason) => {
  await using server = await endpoint(answer)
  const embeddings = new Embeddings({ url: server.url, model: 'm', timeoutMs: 200 })
  expect(await embeddings.embed(['x'])).toEqual({ failed: expect.stringContaining(reason) })
})

test('a model is identified by its endpoint and its name', async () => {
  const of = (url: string, model: string) => new Embeddings({ url, model }).model()
  const models = [of('http://a', 'm'), of('http://b', 'm'), of('http://a', 'n'), of('http://a', 'm')]
  expect(new Set(await Promise.all(models)).size).toBe(3)
})
