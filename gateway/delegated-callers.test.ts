import { expect, test } from 'vitest'
import { agent, call, gateway, gatewayForEachTest, identityProvider, saying } from './testing.ts'

gatewayForEachTest()

const delegate = 'did:parley:ann:agent:one'

/** A token with which an agent acts for alice. */
function delegated(scope = 'agent:read agent:write'): string {
  const aud = gateway().addresses.public
  return `Bearer ${identityProvider().issue('alice', { scope, aud, act: { sub: delegate } })}`
}

async function send(method: string, path: string, scope?: string) {
  const response = await fetch(`${gateway().addresses.public}${path}`, {
    method,
    headers: { authorization: delegated(scope), 'content-type': 'application/json' },
    ...(method !== 'GET' && { body: '{}' }),
  })
  const answer = (await response.json()) as { error?: { code: number; data?: { reason?: string } } }
  return { status: response.status, code: answer.error?.code, reason: answer.error?.data?.reason }
}

test.each([
  ['POST', '/registry/agents'],
  ['DELETE', '/registry/agents/sky'],
  ['PUT', '/registry/agents/sky/heartbeat'],
  ['PUT', `/registry/agents/sky/signatures/${'A'.repeat(43)}`],
  ['POST', '/agent/negotiation'],
  ['GET', `/negotiations/${'0'.repeat(32)}`],
])('%s %s refuses an agent that acts for a client', async (method, path) => {
  expect(await send(method, path)).toEqual({ status: 403, code: -32013, reason: 'delegated_token' })
})

test.each([
  ['GET', '/registry/agents?status=left'],
  ['POST', '/registry/agents/sky/admit'],
  ['POST', '/registry/agents/sky/quarantine'],
  ['POST', '/registry/agents/sky/release'],
])('%s %s refuses an agent that acts for an operator', async (method, path) => {
  const refused = await send(method, path, 'agent:read agent:write agent:admin')
  expect(refused).toEqual({ status: 403, code: -32013, reason: 'delegated_token' })
})

test('an agent that acts for a client may send messages and use its tasks, but not the contexts of the client', async () => {
  await agent('sky', 'Weather forecast for any city')
  const authorization = delegated()
  const sent = await call('message/send', saying('weather forecast'), { authorization })
  expect([sent.status, sent.headers.get('x-agent')]).toEqual([200, 'sky'])
  const { id } = sent.json.result
  expect((await call('tasks/get', { task_id: id }, { authorization })).status).toBe(200)
  expect((await call('tasks/list', {}, { authorization })).status).toBe(200)
  for (const [method, params] of [
    ['contexts/list', {}],
    ['contexts/clear', { context_id: sent.json.result.context_id }],
    ['agent/getAuthenticatedExtendedCard', {}],
  ] as const) {
    const refused = await call(method, params, { authorization })
    expect([refused.status, refused.json.error.data.reason]).toEqual([403, 'delegated_token'])
  }
})

test('a message of an agent is not routed back to an agent of its chain', async () => {
  const did = 'did:parley:ann:agent:sky'
  await agent('sky', 'Weather forecast for any city', { did })
  const aud = gateway().addresses.public
  const act = { sub: did, act: { sub: delegate } }
  const authorization = `Bearer ${identityProvider().issue('alice', { aud, act })}`
  const alone = await call('message/send', saying('weather forecast'), { authorization })
  expect([alone.status, alone.json.error.code]).toEqual([400, -32004])
  expect(alone.text).toContain('already acts for the client')
  await agent('cloud', 'Weather forecast for any city')
  const sent = await call('message/send', saying('weather forecast'), { authorization })
  expect([sent.status, sent.headers.get('x-agent')]).toEqual([200, 'cloud'])
})
