import { type TestAgent, testAgent } from '@parley/agent/testing'
import { raw, rpc } from '@parley/tools/testing/raw-http'
import { ParleyError } from '@parley/wire/errors'
import { afterEach, expect, test } from 'vitest'
import { makeLog } from '../process/log.ts'
import { createMetrics } from '../process/metrics.ts'
import { createServer } from './server.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.[Symbol.asyncDispose]()
})

type LogLine = Record<string, unknown>

function auditLog() {
  const audited: LogLine[] = []
  const everything: string[] = []
  const write = (line: string) => {
    everything.push(line)
    const fields: LogLine = JSON.parse(line)
    if (fields['audit'] === true) audited.push(fields)
  }
  return { audited, everything, logTo: { write } }
}

async function auditedAgent(level: string, env: Record<string, string> = {}) {
  const log = auditLog()
  const options = { env: { LOG_LEVEL: level, ...env }, logTo: log.logTo }
  const agent: TestAgent = await testAgent({ handle: ({ text }) => text }, options)
  open.push(agent)
  return { agent, ...log }
}

const message = { role: 'user', kind: 'message', parts: [{ kind: 'text', text: 'hi' }] }
const send = () => ({ message: { ...message, messageId: crypto.randomUUID() } })

test('a rejected caller is logged with the reason and the address, but never with the token', async () => {
  const { agent, audited, everything } = await auditedAgent('info')
  const bad = 'very-secret-bad-token'
  const old = agent.identityProvider.issue('alice', { exp: 1 })
  await rpc(agent, 'tasks/list', {}, { token: undefined })
  await rpc(agent, 'tasks/list', {}, { token: bad, headers: { 'x-request-id': 'r-7' } })
  await rpc(agent, 'tasks/list', {}, { token: old })
  await rpc(agent, 'message/send', send(), { token: agent.caller('bob', 'agent:read').token })
  expect(audited).toMatchObject([
    { action: 'JSON-RPC', allowed: false, reason: 'AuthenticationRequired', address: '127.0.0.1' },
    { action: 'JSON-RPC', allowed: false, reason: 'InvalidToken', request_id: 'r-7' },
    { action: 'JSON-RPC', allowed: false, reason: 'TokenExpired' },
    { action: 'message/send', allowed: false, reason: 'InsufficientPermissions: scope', who: 'bob' },
  ])
  expect(everything.join('')).not.toContain(bad)
  expect(everything.join('')).not.toContain(old)
})

test('successful calls and invalid requests are not logged', async () => {
  const { agent, audited } = await auditedAgent('info')
  await rpc(agent, 'tasks/list')
  await rpc(agent, 'message/send', send())
  await rpc(agent, 'tasks/get', { task_id: crypto.randomUUID() })
  await rpc(agent, 'message/send', {})
  await raw(agent, { path: '/nothing', method: 'GET' })
  expect(audited).toEqual([])
})

test('accepted writes are logged at level debug, but reads are not', async () => {
  const { agent, audited } = await auditedAgent('debug')
  await rpc(agent, 'message/send', send())
  await rpc(agent, 'tasks/list')
  expect(audited).toMatchObject([{ level: 20, who: 'alice', action: 'message/send', allowed: true }])
})

test('a rate-limited caller is logged once per blocked window', async () => {
  const { agent, audited } = await auditedAgent('info', { RATE_LIMIT_PER_MINUTE: '2' })
  const { token } = agent.caller('alice')
  for (let number = 0; number < 6; number += 1) await rpc(agent, 'tasks/list', {}, { token })
  for (let number = 0; number < 6; number += 1) await raw(agent, { path: '/nothing', method: 'GET' })
  expect(audited).toMatchObject([
    { who: 'alice', action: 'request', allowed: false, reason: 'TooManyRequests' },
    { address: '127.0.0.1', action: 'request', allowed: false, reason: 'TooManyRequests' },
  ])
})

test('a route with an audit name is logged whether it succeeds or is refused', async () => {
  const { audited, logTo } = auditLog()
  const log = makeLog({ level: 'info', name: 'test', destination: logTo })
  const app = createServer({ log, metrics: createMetrics() })
  app.post<{ Params: { id: string } }>(
    '/agents/:id/admit',
    { config: { audit: 'registry.admit' } },
    (request) => {
      request.callerId = 'operator-1'
      if (request.params.id === 'taken') throw new ParleyError('Conflict', { data: { reason: 'slug' } })
      return 'admitted'
    },
  )
  const url = await app.listen({ port: 0, host: '127.0.0.1' })
  open.push({ [Symbol.asyncDispose]: () => app.close() })
  await raw({ url }, { path: '/agents/calc/admit' })
  await raw({ url }, { path: '/agents/taken/admit' })
  await raw({ url }, { path: `/agents/${'%0a'.repeat(50)}/admit` })
  const admit = { who: 'operator-1', action: 'registry.admit' }
  expect(audited).toMatchObject([
    { ...admit, target: 'calc', allowed: true },
    { ...admit, target: 'taken', allowed: false, reason: 'Conflict: slug' },
    { ...admit, target: '?'.repeat(50), allowed: true },
  ])
})
