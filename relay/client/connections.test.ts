import { parseAllowedHosts } from '@parley/kit/net/allowed-hosts'
import { type ForeignScript, startForeignAgent } from '@parley/tools/testing/foreign-agent'
import { dialectNamed } from '@parley/wire/codecs/dialects'
import { afterEach, expect, test, vi } from 'vitest'
import { A2aClient } from './a2a-client.ts'

const disposables: AsyncDisposable[] = []
afterEach(async () => {
  for (const one of disposables.splice(0).reverse()) await one[Symbol.asyncDispose]()
})

const status = { state: 'TASK_STATE_COMPLETED' }
const completed = { task: { id: 't-1', contextId: 'c-1', status } }

test('the connection is used again when a stream ends after the last frame that is read', async () => {
  const { send, ports } = await streaming((_request, reply) => {
    reply.frame(completed)
    setTimeout(() => reply.end(), 20)
  })
  // The end of a stream may arrive after the next message is sent.
  await vi.waitFor(async () => {
    await send()
    expect(new Set(ports).size).toBeLessThan(ports.length)
  })
})

test('the connection is closed when the stream stays open', async () => {
  const { send, closed, ports } = await streaming((_request, reply) => reply.frame(completed), 50)
  await send()
  await closed
  expect(ports).toHaveLength(1)
})

test('the connection is closed when the rest of the stream is long', async () => {
  const { send, closed, ports } = await streaming((_request, reply) => {
    reply.frame(completed)
    reply.response.write(`: ${'x'.repeat(1024 * 1024)}\n\n`)
  })
  await send()
  await closed
  expect(ports).toHaveLength(1)
})

/**
 * Starts an agent that answers with streams. `send` sends a message and reads the first frame. `ports` are the client's ports of
 * the requests.
 */
async function streaming(script: ForeignScript, restMs = 60_000) {
  const ports: (number | undefined)[] = []
  const { promise: closed, resolve: close } = Promise.withResolvers<void>()
  const agent = await startForeignAgent((request, reply) => {
    ports.push(reply.response.socket?.remotePort)
    reply.response.once('close', close)
    return script(request, reply)
  })
  const client = new A2aClient({
    url: agent.url,
    dialect: dialectNamed('a2a-v1'),
    streaming: true,
    allowed: parseAllowedHosts('127.0.0.1'),
    limits: { restMs },
  })
  disposables.push(agent, client)
  const send = async () => {
    const message = { role: 'user' as const, messageId: 'm-1', parts: [], metadata: {} }
    for await (const _ of client.send(
      { message, configuration: { wait: false } },
      AbortSignal.timeout(60_000),
    ))
      return
  }
  return { send, closed, ports }
}
