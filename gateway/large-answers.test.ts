import { once } from 'node:events'
import type http from 'node:http'
import { expect, test } from 'vitest'
import { answered, changes, saying, testInterface } from './calls/testing.ts'
import { agent, bearer, gateway, gatewayForAllTests } from './testing.ts'

gatewayForAllTests({ REGISTRY_ALLOWED_HOSTS: '127.0.0.1' }, { testInterface })

const mib = 1024 * 1024
const taskId = '11111111-2222-4333-8444-555555555555'
const external = { origin: 'registered', admittedBy: 'operator', card: {} }
const chunk = Buffer.alloc(mib, 'x')

/** Sends a text of 100 MiB between two texts until the reader leaves, and returns how many MiB were sent. */
async function sendLarge(response: http.ServerResponse, before: string, after: string): Promise<number> {
  const left = new AbortController()
  response.once('close', () => left.abort())
  response.write(before)
  for (let sent = 0; sent < 100; sent += 1) {
    if (!response.write(chunk)) await once(response, 'drain', { signal: left.signal }).catch(() => {})
    if (response.destroyed) return sent
  }
  response.end(after)
  return 100
}

const opening = `{"jsonrpc":"2.0","id":1,"result":{"id":"${taskId}","context_id":"c","kind":"task","status":{"state":"completed","timestamp":"2026-11-23T00:00:00Z"},"artifacts":[{"artifact_id":"a","parts":[{"kind":"text","text":"`
const closing = '"}]}]}}'

test('an operator learns that the task of an agent is too large, of which 4 MiB are read', async () => {
  const sky = await agent('supervised', 'Sends 100 MiB')
  const { promise: sent, resolve } = Promise.withResolvers<number>()
  sky.get = (_path, _request, response) => {
    resolve(sendLarge(response.setHeader('content-type', 'application/json'), '{"task":"', '"}'))
    return 'later'
  }
  const response = await fetch(`${gateway().addresses.public}/operator/tasks/${taskId}?agent=supervised`, {
    headers: { authorization: bearer('root', 'agent:read agent:admin') },
  })
  const { error } = (await response.json()) as { error: { message: string; data: object } }
  expect([response.status, error.data]).toEqual([503, { reason: 'agent_unread', agent: 'supervised' }])
  expect(error.message).toContain('too large')
  expect(error.message).toContain('tasks/get')
  expect(await sent).toBeLessThan(30)
})

test('a task of 100 MiB of an external agent is refused after 64 MiB, and the next answer is read', async () => {
  const sky = await agent('external', 'Sends 100 MiB', external)
  const { promise: sent, resolve } = Promise.withResolvers<number>()
  sky.on['tasks/get'] = ({ response }) => {
    resolve(sendLarge(response.setHeader('content-type', 'application/json'), opening, closing))
    return sent
  }
  const task = { taskId, agent: 'external' }
  const refused = await answered({ get: task })
  expect([refused.status, refused.json.error.data]).toEqual([500, { reason: 'answer_too_large' }])
  expect(refused.json.error.message).toContain('larger than 64 MiB')
  expect(await sent).toBeLessThan(95)
  sky.on['tasks/get'] = ({ response }) => response.end(`${opening}small${closing}`)
  expect((await answered({ get: task })).status).toBe(200)
})

test('an event of 100 MiB ends the stream with an error', async () => {
  const sky = await agent('streams', 'Sends 100 MiB', external)
  const { promise: sent, resolve } = Promise.withResolvers<number>()
  sky.on['message/stream'] = ({ response }) => {
    resolve(sendLarge(response.setHeader('content-type', 'text/event-stream'), 'data: {"x":"', '"}\n\n'))
    return sent
  }
  const seen = await changes({ stream: saying('go', { agent: 'streams' }) })
  expect(seen).toMatchObject([{ error: 'InvalidAgentResponse' }])
  expect(await sent).toBeLessThan(95)
})

test('a message that an external agent answers with 100 MiB fails with the reason', async () => {
  const sky = await agent('answers', 'Sends 100 MiB', external)
  const { promise: sent, resolve } = Promise.withResolvers<number>()
  sky.on['message/send'] = ({ response }) => {
    resolve(sendLarge(response.setHeader('content-type', 'application/json'), opening, closing))
    return sent
  }
  const failed = await answered({ send: saying('go', { agent: 'answers' }), waitMs: 1000 })
  expect([failed.status, failed.json.error.data]).toEqual([500, { reason: 'answer_too_large' }])
  expect(await sent).toBeLessThan(95)
})
