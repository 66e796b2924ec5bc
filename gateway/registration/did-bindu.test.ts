import { answerChallenge, type Challenge } from '@parley/kit/did/challenge'
import { keyId } from '@parley/kit/did/did'
import { keyPairFromSeed } from '@parley/kit/did/keys'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { RegistrationGateway, type ScriptedAgent } from './testing.ts'

let deployment: RegistrationGateway

beforeEach(async () => {
  deployment = await RegistrationGateway.open()
})
afterEach(() => deployment[Symbol.asyncDispose]())

const operator = () => deployment.clientToken('oauth/operator-client.json', 'agent:admin agent:write')
const key = keyPairFromSeed(Buffer.alloc(32, 51))
const other = keyPairFromSeed(Buffer.alloc(32, 52))
/** Derived from the author and name, like the DIDs of the reference implementation's agents. */
const named = 'did:bindu:dev_at_example_com:echo_agent:00d43e45-959b-fb88-2bab-3d30a371d743'
/** Derived from the key, like the DID of the reference implementation's gateway. */
const derived = `did:bindu:dev_at_example_com:echo_agent:${keyId(key.publicKey)}`

const documentOf = (did: string, publicKeyBase58 = key.publicKeyBase58) => ({
  '@context': ['https://www.w3.org/ns/did/v1', 'https://getbindu.com/ns/v1'],
  id: did,
  created: '2026-01-01T00:00:00.000000+00:00',
  authentication: [
    { id: `${did}#key-1`, type: 'Ed25519VerificationKey2020', controller: did, publicKeyBase58 },
  ],
})

/** Scripts an agent with a card that has no `did` and gives the DID in an extension of its capabilities. */
const bindu = (did: string, more: ScriptedAgent = {}): ScriptedAgent => ({
  card: {
    capabilities: {
      extensions: [
        { uri: 'https://github.com/google-a2a/a2a-x402/v0.1', required: true },
        { uri: did, required: false, params: { author: 'dev@example.com' } },
      ],
    },
  },
  document: documentOf(did),
  ...more,
})
const proving = (did: string) => (asked: unknown) => answerChallenge(asked as Challenge, did, key)

async function resolved(did: string) {
  const answer = await fetch(
    `${deployment.gateway.addresses.public}/did/resolve?did=${encodeURIComponent(did)}`,
  )
  return { status: answer.status, json: (await answer.json()) as Record<string, unknown> }
}

test('an agent’s DID can be in an extension of its card, and its document is read from the agent', async () => {
  await deployment.start()
  const agent = await deployment.serveAgent(bindu(named))
  const { status, json } = await deployment.join(agent.url, await operator())
  expect([status, json]).toMatchObject([201, { did: named, verified: false, admitted: true }])
  expect(agent.calls.map(({ url }) => url)).toContain(`/did/resolve?did=${encodeURIComponent(named)}`)
  expect(await resolved(named)).toEqual({ status: 200, json: documentOf(named) })
})

test('a did:bindu document is not published while its agent awaits admission', async () => {
  await deployment.start({ REGISTRY_OPEN: 'no' })
  const agent = await deployment.serveAgent(bindu(named))
  expect((await deployment.join(agent.url, await deployment.carol())).json).toMatchObject({ admitted: false })
  expect((await resolved(named)).status).toBe(404)
})

test('a did:bindu is proven by the key from which its id derives', async () => {
  await deployment.start()
  const agent = await deployment.serveAgent(bindu(derived, { challenge: proving(derived) }))
  expect((await deployment.join(agent.url, await operator())).json).toMatchObject({
    did: derived,
    verified: true,
    keys: [key.publicKeyBase58],
  })
})

test('a did:bindu derived from author and name is never verified', async () => {
  await deployment.start()
  const agent = await deployment.serveAgent(bindu(named, { challenge: proving(named) }))
  expect((await deployment.join(agent.url, await operator())).json).toMatchObject({
    did: named,
    verified: false,
    keys: [],
  })
})

test.each<[string, ScriptedAgent]>([
  ['is about another DID', bindu(named, { document: documentOf(derived) })],
  ['has no key', bindu(named, { document: { id: named, authentication: [] } })],
  ['has an invalid key', bindu(named, { document: documentOf(named, 'O0Il') })],
])('an agent whose did:bindu document %s is refused', async (_what, script) => {
  await deployment.start()
  const agent = await deployment.serveAgent(script)
  const { status, error } = await deployment.join(agent.url, await operator())
  expect([status, error.data.reason]).toEqual([400, 'did_document'])
})

test('a DID derived from one key is not proven by another key of its document', async () => {
  await deployment.start()
  const did = `did:bindu:dev:agent:${keyId(other.publicKey)}`
  const agent = await deployment.serveAgent(bindu(did, { challenge: proving(did) }))
  expect((await deployment.join(agent.url, await operator())).json).toMatchObject({ did, verified: false })
})

test('the card’s `did` takes precedence over its extensions, and invalid DIDs in extensions are skipped', async () => {
  await deployment.start()
  const extensions = [{ uri: 'did:' }, { uri: 7 }, null, { uri: 'did:ion:xyz' }]
  const first = await deployment.serveAgent({
    name: 'one',
    card: { did: 'did:ion:abc', capabilities: { extensions } },
  })
  expect((await deployment.join(first.url, await operator())).json).toMatchObject({ did: 'did:ion:abc' })
  const second = await deployment.serveAgent({ name: 'two', card: { capabilities: { extensions } } })
  expect((await deployment.join(second.url, await operator())).json).toMatchObject({ did: 'did:ion:xyz' })
  const third = await deployment.serveAgent({ name: 'three', card: { capabilities: { extensions: 'none' } } })
  expect((await deployment.join(third.url, await operator())).json).toMatchObject({ did: null })
})
