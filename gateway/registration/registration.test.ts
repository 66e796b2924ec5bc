import type { Identity } from '@parley/kit/did/identity'
import bs58 from 'bs58'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { alice, bob, type Played, RegistrationGateway } from './testing.ts'

let house: RegistrationGateway

beforeEach(async () => {
  house = await RegistrationGateway.open()
})

afterEach(() => house[Symbol.asyncDispose]())

test('an agent that answers the challenge is verified: 201, and 200 when it comes again', async () => {
  await house.start()
  const agent = await house.playAgent({ identity: alice })
  const bearer = await house.carol()
  const first = await house.join(agent.url, bearer)
  expect(first.status).toBe(201)
  expect(first.json).toMatchObject({
    slug: 'stranger',
    did: alice.did,
    verified: true,
    admitted: false,
    keys: [alice.key.publicKeyBase58],
    skills: [{ id: 'greet' }],
    card_changes: [],
  })
  expect((await house.join(`${agent.url}/`, bearer)).status).toBe(200)
  expect(agent.calls.every(({ authorization }) => authorization === undefined)).toBe(true)
})

test('a request signed with the key of its DID makes the entry verified, without a challenge', async () => {
  await house.start()
  const agent = await house.playAgent({ identity: alice, challenge: 'no route' })
  const bearer = await house.registered(alice)
  expect((await house.join(agent.url, bearer, alice)).json).toMatchObject({ verified: true, did: alice.did })
  expect(agent.calls.map(({ url }) => url)).not.toContain('/did/challenge')
})

test.each<[string, Identity | undefined, string]>([
  ['does not sign', undefined, 'missing_signature_headers'],
  ['signs with a key of its own', bob, 'crypto_mismatch'],
])('a client named after the DID that %s is not the agent', async (_what, signer, reason) => {
  await house.start()
  const agent = await house.playAgent({ identity: alice })
  const bearer = await house.registered(alice)
  const answer = await house.join(agent.url, bearer, signer && { ...signer, did: alice.did })
  expect([answer.status, answer.error.code, answer.error.data.reason]).toEqual([403, -32012, reason])
  expect(house.gateway.registry.all()).toEqual([])
})

test('an A2A agent without DID is registered by its card, unverified, and probed', async () => {
  await house.start()
  const agent = await house.playAgent({})
  expect((await house.join(agent.url, await house.carol())).json).toMatchObject({
    did: null,
    verified: false,
    keys: [],
  })
})

test('an agent without a challenge route is registered unverified', async () => {
  await house.start()
  const agent = await house.playAgent({ identity: alice, challenge: 'no route' })
  expect((await house.join(agent.url, await house.carol())).json).toMatchObject({
    did: alice.did,
    verified: false,
  })
})

test('a DID of a method that cannot be checked stands in the entry unverified', async () => {
  await house.start()
  const foreign = await house.playAgent({ card: { did: 'did:ion:abc' } })
  expect((await house.join(foreign.url, await house.carol())).json).toMatchObject({
    did: 'did:ion:abc',
    verified: false,
  })
})

test('did:key is proven like ours, and not by another key', async () => {
  await house.start()
  const did = `did:key:z${bs58.encode([0xed, 0x01, ...alice.key.publicKey])}`
  const liar = await house.playAgent({ identity: { ...alice, did }, challenge: { ...bob, did } })
  expect((await house.join(liar.url, await house.carol())).error.data.reason).toBe('crypto_mismatch')
  const agent = await house.playAgent({ identity: { ...alice, did } })
  expect((await house.join(agent.url, await house.carol())).json).toMatchObject({ did, verified: true })
})

test('a changed card is kept as a difference; a changed key without a proof by the old one is refused', async () => {
  await house.start()
  const played: Played = { identity: alice, card: { executionCost: { amount: '0.01' } } }
  const agent = await house.playAgent(played)
  const bearer = await house.carol()
  await house.join(agent.url, bearer)
  played.card = { executionCost: { amount: '5' } }
  const changed = await house.join(agent.url, bearer)
  expect(changed.json['card_changes']).toMatchObject([
    { field: 'executionCost', before: { amount: '0.01' }, after: { amount: '5' } },
  ])
  played.document = bob.document
  expect((await house.join(agent.url, bearer)).error.data.reason).toBe('did_document')
})
