import { type CardAlgorithm, cardKeysOf, verifyCard } from '@parley/kit/did/card-signature'
import { raw } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type TestAgent, testAgent } from '../../testing.ts'

let agent: TestAgent
beforeAll(async () => {
  const extendedCard = { skills: [{ id: 'more', name: 'More', description: 'For callers' }] }
  agent = await testAgent({ handle: () => 'done', extendedCard }, { store: 'memory' })
})
afterAll(() => agent[Symbol.asyncDispose]())

/** Finds the key in the agent's DID document, as a client does. */
async function keyIn({ url, did }: TestAgent, kid: string, alg: CardAlgorithm) {
  const answer = await fetch(`${url}/did/resolve?did=${encodeURIComponent(did)}`)
  return cardKeysOf(await answer.json(), did)(kid, alg)
}
const keyOf = (kid: string, alg: CardAlgorithm) => keyIn(agent, kid, alg)

const shared = '/.well-known/agent-card.json'

test.each([
  [shared, ''],
  [shared, '1.0'],
  [`/a2a/v1${shared}`, ''],
  [`/a2a/v0.3${shared}`, ''],
])('the card at %s for version "%s" is signed with the key of the DID document', async (path, version) => {
  const { json } = await raw(agent, { method: 'GET', path, headers: { 'a2a-version': version } })
  expect(await verifyCard(json, keyOf)).toMatchObject({
    verified: true,
    kid: `${agent.did}#key-1`,
    covers: 'card',
  })
  expect(await verifyCard({ ...json, version: '9' }, keyOf)).toMatchObject({ reason: 'mismatch' })
  // An Ed25519 signature is the same each time, so the ETag is too.
  const again = await raw(agent, { method: 'GET', path, headers: { 'a2a-version': version } })
  expect(again.json).toEqual(json)
})

test.each([
  ['/a2a/v1', 'GetExtendedAgentCard'],
  ['/a2a/v0.3', 'agent/getAuthenticatedExtendedCard'],
])('the extended card at %s is signed', async (path, method) => {
  const headers = { authorization: `Bearer ${agent.identityProvider.issue('alice')}` }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: {} })
  const { json } = await raw(agent, { path, headers, body })
  expect(json.result.skills).toHaveLength(2)
  expect(await verifyCard(json.result, keyOf)).toMatchObject({ verified: true, covers: 'card' })
})

test('with CARD_ES256, cards are signed with ES256 too, by a key that the DID document lists', async () => {
  const options = { store: 'memory', env: { CARD_ES256: 'yes' } } as const
  await using both = await testAgent({ handle: () => 'done' }, options)
  const { json } = await raw(both, { method: 'GET', path: shared })
  const es256 = (kid: string, alg: CardAlgorithm) =>
    alg === 'ES256' ? keyIn(both, kid, alg) : Promise.resolve(undefined)
  const kid = `${both.did}#key-1-es256`
  expect(await verifyCard(json, es256)).toMatchObject({ verified: true, alg: 'ES256', kid, covers: 'card' })
  expect((await raw(both, { method: 'GET', path: shared })).json).toEqual(json)
})

test('an extended card at an address that the caller chose is not signed', async () => {
  const extendedCard = { skills: [] }
  await using behind = await testAgent(
    { handle: () => 'done', extendedCard },
    { store: 'memory', env: { TRUSTED_PROXIES: '127.0.0.1' } },
  )
  const headers = {
    authorization: `Bearer ${behind.identityProvider.issue('alice')}`,
    'x-forwarded-for': '10.0.0.1',
    'x-forwarded-host': 'evil.example',
    'x-forwarded-prefix': '/agents/x',
  }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetExtendedAgentCard', params: {} })
  const { json } = await raw(behind, { path: '/a2a/v1', headers, body })
  expect(json.result.supportedInterfaces[0].url).toBe('http://evil.example/agents/x/a2a/v1')
  expect(json.result).not.toHaveProperty('signatures')
})
