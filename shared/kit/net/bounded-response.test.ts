import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Pool } from 'undici'
import { expect, test } from 'vitest'
import { BoundedResponse } from './bounded-response.ts'

async function server(listener: RequestListener) {
  const http = createServer(listener)
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const pool = new Pool(`http://127.0.0.1:${(http.address() as AddressInfo).port}`, { connections: 1 })
  return {
    async get(response: BoundedResponse) {
      pool.dispatch({ method: 'GET', path: '/' }, response)
      const { status, body } = await response.received
      return { status, text: body.toString('utf8') }
    },
    async [Symbol.asyncDispose]() {
      await pool.destroy()
      http.closeAllConnections()
      http.close()
    },
  }
}

test('returns status and body, however the body is split into chunks', async () => {
  await using there = await server((_request, response) => {
    const bytes = Buffer.from('grüß dich')
    response.writeHead(201)
    response.write(bytes.subarray(0, 3))
    setImmediate(() => response.end(bytes.subarray(3)))
  })
  expect(await there.get(new BoundedResponse({ maxBytes: 100 }))).toEqual({ status: 201, text: 'grüß dich' })
})

test('rejects a response over the limit before its end and still receives the next response', async () => {
  let requests = 0
  await using there = await server((_request, response) => {
    requests += 1
    if (requests > 1) response.end('small')
    // The first response never ends.
    else response.write('x'.repeat(101))
  })
  await expect(there.get(new BoundedResponse({ maxBytes: 100 }))).rejects.toThrow('larger than 100 bytes')
  expect((await there.get(new BoundedResponse({ maxBytes: 100 }))).text).toBe('small')
})

test('rejects when the connection breaks', async () => {
  await using there = await server((request) => request.socket.destroy())
  await expect(there.get(new BoundedResponse({ maxBytes: 100 }))).rejects.toThrow('other side closed')
})

test('abort rejects before the request is sent and while the body arrives', async () => {
  await using there = await server((_request, response) => void response.write('x'))
  const early = new BoundedResponse({ maxBytes: 100 })
  early.abort(new Error('too late'))
  await expect(there.get(early)).rejects.toThrow('too late')
  const dripping = new BoundedResponse({ maxBytes: 100 })
  const received = there.get(dripping)
  setImmediate(() => dripping.abort(new Error('too late')))
  await expect(received).rejects.toThrow('too late')
})

test('abort before `received` is read rejects the later reader', async () => {
  const response = new BoundedResponse({ maxBytes: 100 })
  response.abort(new Error('too late'))
  // An unhandled rejection would end the process.
  await new Promise((resolve) => setImmediate(resolve))
  await expect(response.received).rejects.toThrow('too late')
})
