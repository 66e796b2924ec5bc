import {
  newStatementKey,
  type OperatorGateway,
  type StatementParts,
  startOperatorGateway,
} from '@parley/tools/testing/operator-gateway'
import { raw } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../../testing.ts'

let gateway: OperatorGateway
let agent: TestAgent
beforeAll(async () => {
  gateway = await startOperatorGateway()
  agent = await testAgent({ handle: () => 'done' }, { store: 'memory', env: { GATEWAY_URL: gateway.url } })
})
afterAll(async () => {
  await agent[Symbol.asyncDispose]()
  await gateway[Symbol.asyncDispose]()
})

const now = () => Math.floor(Date.now() / 1000)
const list = (token: string | undefined) => raw(agent, { path: '/operator/tasks', method: 'GET', token })
const statement = (parts?: StatementParts) => gateway.sign(agent.did, 'tasks.read', parts)
const codeOf = async (token: string | undefined) => {
  const { status, json } = await list(token)
  return [status, json.error?.code]
}

test('a statement of the gateway is accepted until it expires, under the DID and the address of the agent', async () => {
  const text = await statement()
  expect((await list(text)).json).toEqual({ tasks: [], next_cursor: null })
  expect((await list(text)).status).toBe(200)
  expect((await list(await gateway.sign(agent.url, 'tasks.read'))).status).toBe(200)
  expect((await list(await statement({ claims: { iat: now() - 58, exp: now() + 2 } }))).status).toBe(200)
})

test('answers name the time of the agent and are not stored', async () => {
  const { headers } = await list(await statement())
  expect(headers.get('cache-control')).toBe('no-store')
  expect(headers.get('x-parley-time')).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/)
})

describe('HTTP 401 for', () => {
  test.each<[string, () => StatementParts]>([
    ['another agent', () => ({ claims: { aud: 'did:key:other' } })],
    ['several agents', () => ({ claims: { aud: [agent.did, 'did:key:other'] } })],
    ['no agent', () => ({ claims: { aud: undefined } })],
    ['another gateway', () => ({ claims: { iss: 'https://other.example' } })],
    ['no person', () => ({ claims: { sub: undefined } })],
    ['an unknown group', () => ({ claims: { group: 'everything' } })],
    ['an owner that is not text', () => ({ claims: { owner: ['alice'] } })],
    ['texts that are not a boolean', () => ({ claims: { texts: 'yes' } })],
    ['a statement without an ID', () => ({ claims: { jti: undefined } })],
    ['a statement without an expiry', () => ({ claims: { exp: undefined } })],
    ['a lifetime of an hour', () => ({ claims: { exp: now() + 3600 } })],
    ['a time of issue in the future', () => ({ claims: { iat: now() + 30, exp: now() + 60 } })],
    ['an unknown key', () => ({ by: newStatementKey() })],
    ['another key under a known ID', () => ({ by: newStatementKey(gateway.key.kid) })],
    ['a statement about a caller', () => ({ header: { typ: 'parley-statement+jwt' } })],
    ['another JWT', () => ({ header: { typ: 'JWT' } })],
  ])('%s', async (_what, parts) => {
    expect(await codeOf(await statement(parts()))).toEqual([401, -32010])
  })

  test('a statement that has expired', async () => {
    expect(await codeOf(await statement({ claims: { iat: now() - 90, exp: now() - 30 } }))).toEqual([
      401, -32011,
    ])
  })

  test('a statement without a signature, and one that was changed', async () => {
    const text = await statement()
    const [head = '', body = '', signature = ''] = text.split('.')
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as object
    const changed = Buffer.from(JSON.stringify({ ...claims, sub: 'mallory' })).toString('base64url')
    for (const forged of [`${head}.${body}.`, `${head}.${changed}.${signature}`])
      expect(await codeOf(forged)).toEqual([401, -32010])
  })

  test('no token, and tokens of callers, whatever their scopes are', async () => {
    expect(await codeOf(undefined)).toEqual([401, -32009])
    const scope = 'agent:read agent:write agent:admin agent:ledger'
    expect(await codeOf(agent.caller('root', scope).token)).toEqual([401, -32010])
    expect(await codeOf('nonsense')).toEqual([401, -32010])
  })
})

test('HTTP 403 for a statement of another group', async () => {
  expect(await codeOf(await gateway.sign(agent.did, 'usage.read'))).toEqual([403, -32013])
})

test('a statement of the gateway is no token at any other route', async () => {
  const text = await statement()
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/list', params: {} })
  const headers = { 'content-type': 'application/json' }
  expect((await raw(agent, { token: text, body, headers })).status).toBe(401)
})

test('a statement that changes something is accepted once', async () => {
  const hanging = await agent.caller('alice').sendAndWait('hello')
  const token = await gateway.sign(agent.did, 'tasks.cancel')
  const cancel = () => raw(agent, { path: `/operator/tasks/${hanging.id}/cancel`, token })
  expect((await cancel()).json.error.code).toBe(-32002)
  expect(await cancel()).toMatchObject({
    status: 401,
    json: { error: { code: -32010, message: expect.stringContaining('used before') } },
  })
})

test('HTTP 503 while the keys of the gateway cannot be read', async () => {
  await using other = await startOperatorGateway()
  other.answer = { status: 502, body: {} }
  const env = { GATEWAY_URL: other.url }
  await using starting = await testAgent({ handle: () => 'done' }, { store: 'memory', env })
  const token = await other.sign(starting.did, 'tasks.read')
  const answer = await raw(starting, { path: '/operator/tasks', method: 'GET', token })
  expect(answer).toMatchObject({ status: 503, json: { error: { data: { reason: 'gateway_keys' } } } })
})

test('HTTP 404 at an agent without a gateway', async () => {
  await using alone = await testAgent({ handle: () => 'done' }, { store: 'memory' })
  const token = await gateway.sign(alone.did, 'tasks.read')
  const answer = await raw(alone, { path: '/operator/tasks', method: 'GET', token })
  expect(answer).toMatchObject({ status: 404, json: { error: { data: { reason: 'operator_api' } } } })
})

test('requests with a valid statement do not count for the address of the gateway', async () => {
  const env = { GATEWAY_URL: gateway.url, RATE_LIMIT_PER_MINUTE: '3' }
  await using limited = await testAgent({ handle: () => 'done' }, { store: 'memory', env })
  const token = await gateway.sign(limited.did, 'tasks.read')
  const statuses: number[] = []
  for (let sent = 0; sent < 6; sent += 1)
    statuses.push((await raw(limited, { path: '/operator/tasks', method: 'GET', token })).status)
  expect(statuses).toEqual([200, 200, 200, 200, 200, 200])
  const refused: number[] = []
  for (let sent = 0; sent < 4; sent += 1)
    refused.push((await raw(limited, { path: '/operator/tasks', method: 'GET', token: 'forged' })).status)
  expect(refused.at(-1)).toBe(429)
})
