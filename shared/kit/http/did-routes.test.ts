import { type TestAgent, testAgent } from '@parley/agent/testing'
import { raw } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { verifyDocument } from '../did/document.ts'

let agent: TestAgent
beforeAll(async () => {
  agent = await testAgent({ handle: () => 'done' })
})
afterAll(() => agent[Symbol.asyncDispose]())

const get = (query: string) => raw(agent, { method: 'GET', path: `/did/resolve${query}` })
const post = (body: string, headers = { 'content-type': 'application/json' }) =>
  raw(agent, { path: '/did/resolve', body, headers })

test('POST and GET /did/resolve return the agent’s own document as application/did+json, without credentials', async () => {
  for (const answer of [
    await get(`?did=${encodeURIComponent(agent.did)}`),
    await post(JSON.stringify({ did: agent.did })),
  ]) {
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toMatch(/^application\/did\+json/)
    expect(verifyDocument(answer.json, agent.did)).toHaveLength(1)
    expect(answer.json).not.toHaveProperty('created')
  }
})

test.each(['did:parley:nobody:agent:1', 'did:web:example.com', 'did:key:z6Mk%20x'])(
  'unknown %s: 404, -32040, reason did',
  async (did) => {
    for (const answer of [
      await get(`?did=${encodeURIComponent(did)}`),
      await post(JSON.stringify({ did })),
    ]) {
      expect([answer.status, answer.json.error.code, answer.json.error.data]).toEqual([
        404,
        -32040,
        { reason: 'did' },
      ])
      expect(answer.json.id).toBeNull()
    }
  },
)

test.each([
  '',
  '?did=',
  '?did=x',
  '?did=did:',
  '?did=did:parley',
  '?did=did:parley:',
  '?did=DID:parley:a',
  '?did=did:parley:a%20b',
  '?did=did:parley:a%23key-1',
  '?did=did:parley:%F0%9F%98%80',
  '?did=did:x:a&did=did:x:b',
  `?did=did:x:${'a'.repeat(10_000)}`,
])('GET /did/resolve%s returns 400 with -32602', async (query) => {
  const answer = await get(query)
  expect([answer.status, answer.json.error.code]).toEqual([400, -32602])
})

test.each(['{}', '[]', '"did:x:y"', '{"did": 7}', '{"did": null}', '{"did": ["did:x:y"]}', '{"did": "x"}'])(
  'POST /did/resolve %s: 400, -32602',
  async (body) => {
    const answer = await post(body)
    expect([answer.status, answer.json.error.code]).toEqual([400, -32602])
  },
)

test('a body that is not JSON receives -32700, and another content type 415', async () => {
  expect((await post('{')).json.error.code).toBe(-32700)
  expect((await post('')).json.error.code).toBe(-32700)
  expect((await post('did=x', { 'content-type': 'application/x-www-form-urlencoded' })).status).toBe(415)
})
