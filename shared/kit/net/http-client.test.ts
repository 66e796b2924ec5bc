import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'

test('requests work over the dispatcher that the fetch of Node.js has created', async () => {
  await using server = createServer((request, response) => response.end(`${request.method} ${request.url}`))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/path?query=1`
  expect(await (await fetch(address)).text()).toBe('GET /path?query=1')
  const { Pool, request } = await import('./http-client.ts')
  const response = await request(address)
  expect(await response.body.text()).toBe('GET /path?query=1')
  const posted = await request(new URL(address), { method: 'POST', body: 'text' })
  expect(await posted.body.text()).toBe('POST /path?query=1')
  const pool = new Pool(new URL(address).origin)
  onTestFinished(() => pool.close())
  const pooled = await pool.request({ method: 'GET', path: '/pooled' })
  expect(await pooled.body.text()).toBe('GET /pooled')
})
