import { type TestAgent, testAgent } from '@parley/agent/testing'
import { bareSocket, raw, rpc } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { securityHeaders } from './security-headers.ts'

let agent: TestAgent
beforeAll(async () => {
  agent = await testAgent({ handle: ({ text }) => text })
})
afterAll(() => agent[Symbol.asyncDispose]())

const expected = {
  'x-content-type-options': 'nosniff',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
}

test.each([
  ['GET', '/.well-known/agent.json', 200],
  ['GET', '/agent/skills', 200],
  ['GET', '/health', 200],
  ['GET', '/metrics', 200],
  ['GET', '/nothing', 404],
  ['GET', '/', 405],
  ['POST', '/', 401],
  ['GET', '/%', 400],
  ['GET', '/agent/skills/%ff', 400],
])('the response to %s %s with status %i forbids scripts and framing', async (method, path, status) => {
  const answer = await raw(agent, { method, path })
  expect(answer.status).toBe(status)
  expect(Object.fromEntries(answer.headers)).toMatchObject(expected)
})

test('the response to a malformed request also forbids scripts and framing', async () => {
  const answer = await bareSocket(agent.url, 'GET / HTTP/9.9\r\n\r\n')
  for (const [name, value] of Object.entries(expected)) expect(answer).toContain(`\r\n${name}: ${value}\r\n`)
})

test('JSON-RPC responses and errors are not cacheable, while cacheable routes stay cacheable', async () => {
  const answers = [
    await rpc(agent, 'tasks/list'),
    await rpc(agent, 'tasks/get', { task_id: 'none' }),
    await raw(agent, { path: '/nothing', method: 'GET' }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([200, 400, 404])
  for (const { headers } of answers) expect(headers.get('cache-control')).toBe('no-store')
  const card = await raw(agent, { path: '/.well-known/agent.json', method: 'GET' })
  expect(card.headers.get('cache-control')).toContain('public')
})

test.each([
  [undefined, false],
  ['http://agents.example', false],
  ['https://agents.example', true],
])('Strict-Transport-Security is sent only if the public URL is https: %s', (publicUrl, strict) => {
  expect('strict-transport-security' in securityHeaders(publicUrl)).toBe(strict)
})

test('every response has Strict-Transport-Security if PUBLIC_URL is https', async () => {
  await using behindTls = await testAgent(
    { handle: () => '' },
    { env: { PUBLIC_URL: 'https://agents.example' } },
  )
  const { headers } = await raw(behindTls, { path: '/health', method: 'GET' })
  expect(headers.get('strict-transport-security')).toBe('max-age=31536000')
})
