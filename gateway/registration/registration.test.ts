import type { Identity } from '@parley/kit/did/identity'
import bs58 from 'bs58'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { alice, bob, RegistrationGateway, type ScriptedAgent } from './testing.ts'

let deployment: RegistrationGateway

beforeEach(async () => {
  deployment = await RegistrationGateway.open()
})

afterEach(() => deployment[Symbol.asyncDispose]())

test('an agent that answers the challenge is verified, with 201 at first and 200 when it registers again', async () => {
  await deployment.start()
  const agent = await deployment.serveAgent({ identity: alice })
  const bearer = await deployment.carol()
  const first = await deployment.join(agent.url, bearer)
  expect(first.status).toBe(201)
  expect(first.json).toMatchObject({
    slug: 'external',
    did: alice.did,
    verified: true,
    admitted: false,
    keys: [alice.key.publicKeyBase58],
    skills: [{ id: 'greet' }],
    card_changes: [],
  })
  expect((await deployment.join(`${agent.url}/`, bearer)).status).toBe(200)
  expect(agent.calls.every(({ authorization }) => authorization === undefined)).toBe(true)
})

test('the registry keeps the examples and the input schema of a skill, without a schema that refers to another server', async () => {
  await deployment.start()
  const greet = { id: 'greet', examples: ['Greet Ann'] }
  const local = { type: 'object', properties: { name: { type: 'string' } } }
  const remote = { type: 'object', properties: { name: { $ref: 'http://127.0.0.1/schema' } } }
  const agent = await deployment.serveAgent({
    skills: [
      { ...greet, input_schema: local },
      { ...greet, id: 'load', input_schema: remote },
    ],
  })
  await deployment.join(agent.url, await deployment.carol())
  const [kept, refused] = deployment.gateway.registry.all()[0]?.skills ?? []
  expect(kept).toMatchObject({ id: 'greet', examples: ['Greet Ann'], input_schema: local })
  expect(refused).toMatchObject({ id: 'load', examples: ['Greet Ann'] })
  expect(refused).not.toHaveProperty('input_schema')
})

test('a request signed with the key of the agent’s DID verifies the entry without a challenge', async () => {
  await deployment.start()
  const agent = await deployment.serveAgent({ identity: alice, challenge: 'no route' })
  const bearer = await deployment.registered(alice)
  expect((await deployment.join(agent.url, bearer, alice)).json).toMatchObject({
    verified: true,
    did: alice.did,
  })
  expect(agent.calls.map(({ url }) => url)).not.toContain('/did/challenge')
})

test.each<[string, Identity | undefined, string]>([
  ['does not sign', undefined, 'missing_signature_headers'],
  ['signs with another key', bob, 'crypto_mismatch'],
])('a client named after the DID that %s is refused', async (_what, signer, reason) => {
  await deployment.start()
  const agent = await deployment.serveAgent({ identity: alice })
  const bearer = await deployment.registered(alice)
  const answer = await deployment.join(agent.url, bearer, signer && { ...signer, did: alice.did })
  expect([answer.status, answer.error.code, answer.error.data.reason]).toEqual([403, -32012, reason])
  expect(deployment.gateway.registry.all()).toEqual([])
})

test('an A2A agent without a DID is registered by its card as unverified and is probed', async () => {
  await deployment.start()
  const agent = await deployment.serveAgent({})
  expect((await deployment.join(agent.url, await deployment.carol())).json).toMatchObject({
    did: null,
    verified: false,
    keys: [],
  })
})

test('a foreign agent whose card names an address of the gateway is refused', async () => {
  await deployment.start()
  const own = deployment.gateway.addresses.public
  const url = `${own}/agents/external/a2a/v1`
  const supportedInterfaces = [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }]
  const agent = await deployment.serveAgent({ card: { supportedInterfaces } })
  const { status, error } = await deployment.join(agent.url, await deployment.carol())
  expect([status, error.data.reason]).toEqual([400, 'gateway'])
})

test('an agent without a challenge route is registered as unverified', async () => {
  await deployment.start()
  const agent = await deployment.serveAgent({ identity: alice, challenge: 'no route' })
  expect((await deployment.join(agent.url, await deployment.carol())).json).toMatchObject({
    did: alice.did,
    verified: false,
  })
})

test('an agent with a DID of an unsupported method is listed as unverified', async () => {
  await deployment.start()
  const foreign = await deployment.serveAgent({ card: { did: 'did:ion:abc' } })
  expect((await deployment.join(foreign.url, await deployment.carol())).json).toMatchObject({
    did: 'did:ion:abc',
    verified: false,
  })
})

test('a did:key is proven like a did:parley, and another key cannot prove it', async () => {
  await deployment.start()
  const did = `did:key:z${bs58.encode([0xed, 0x01, ...alice.key.publicKey])}`
  const liar = await deployment.serveAgent({ identity: { ...alice, did }, challenge: { ...bob, did } })
  expect((await deployment.join(liar.url, await deployment.carol())).error.data.reason).toBe(
    'crypto_mismatch',
  )
  const agent = await deployment.serveAgent({ identity: { ...alice, did } })
  expect((await deployment.join(agent.url, await deployment.carol())).json).toMatchObject({
    did,
    verified: true,
  })
})

test('a changed card is recorded, but a changed key is refused unless the old key signed it', async () => {
  await deployment.start()
  const script: ScriptedAgent = { identity: alice, card: { executionCost: { amount: '0.01' } } }
  const agent = await deployment.serveAgent(script)
  const bearer = await deployment.carol()
  await deployment.join(agent.url, bearer)
  script.card = { executionCost: { amount: '5' } }
  const changed = await deployment.join(agent.url, bearer)
  expect(changed.json['card_changes']).toMatchObject([
    { field: 'executionCost', before: { amount: '0.01' }, after: { amount: '5' } },
  ])
  script.document = bob.document
  expect((await deployment.join(agent.url, bearer)).error.data.reason).toBe('did_document')
})
