import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { expect, test } from 'vitest'
import { runCli } from '../testing.ts'

/** Starts a gateway that reports an unknown outcome `times` times and then success. */
async function gatewayThatKnowsAfter(times: number) {
  const asked: { body: string; headers: IncomingHttpHeaders }[] = []
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      asked.push({ body, headers: request.headers })
      const { id } = JSON.parse(body) as { id: string }
      const data = { reason: 'outcome_unknown', agent: 'sky', idempotency_key: 'k1' }
      const error = { code: -32042, message: 'Agent sky may have accepted the message', data }
      const status = { state: 'submitted', timestamp: '' }
      const result = {
        kind: 'task',
        id: randomUUID(),
        context_id: randomUUID(),
        status,
        history: [],
        artifacts: [],
      }
      response.setHeader('content-type', 'application/json').setHeader('x-agent', 'sky')
      if (asked.length > times) return response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
      response.writeHead(503, { 'idempotency-key': 'k1', 'retry-after': '0' })
      return response.end(JSON.stringify({ jsonrpc: '2.0', id, error }))
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

const send = (url: string) => runCli(['send', '-', 'hello', '--no-wait', '--token', 't', '--url', url])
const again = '· it is unknown whether sky accepted the message; retrying\n'

test('the client retries a message with an unknown outcome unchanged, with the gateway’s Idempotency-Key', async () => {
  await using gateway = await gatewayThatKnowsAfter(2)
  const { code, stderr } = await send(gateway.url)
  expect([code, stderr]).toEqual([0, `${again}${again}→ sky\n`])
  expect(gateway.asked.map(({ headers }) => headers['idempotency-key'])).toEqual([undefined, 'k1', 'k1'])
  expect(new Set(gateway.asked.map(({ body }) => body)).size).toBe(1)
})

test('the client gives up after three retries', async () => {
  await using gateway = await gatewayThatKnowsAfter(9)
  const { code, stderr } = await send(gateway.url)
  expect(code).toBe(1)
  expect(stderr).toBe(
    `${again.repeat(3)}parley: Agent sky may have accepted the message. Try again in 1 s.\n`,
  )
  expect(gateway.asked).toHaveLength(4)
})
