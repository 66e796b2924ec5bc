import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { DidDocument } from '@parley/kit/did/document'
import { gatewayIdentity } from '@parley/kit/did/identity'
import { cardHash, Voucher, verifyProof } from '@parley/kit/did/vouch'
import { makeLog } from '@parley/kit/process/log'
import type { JsonObject } from '@parley/wire/model/task'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type GatewayApp, startGatewayApp } from './app.ts'
import { gatewayConfig } from './config.ts'
import type { Announcement } from './registry/entry.ts'

let folder: string
let gateway: GatewayApp | undefined

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-trust-'))
})

afterEach(async () => {
  await gateway?.[Symbol.asyncDispose]()
  gateway = undefined
  await rm(folder, { recursive: true, force: true })
})

const identity = {
  SERVICE_GATEWAY_DID_SEED: Buffer.alloc(32, 7).toString('base64'),
  SERVICE_GATEWAY_AUTHOR: 'ada@example.com',
  SERVICE_GATEWAY_NAME: 'Front Door',
}

async function start(env: NodeJS.ProcessEnv, dataDir = 'data'): Promise<GatewayApp> {
  await gateway?.[Symbol.asyncDispose]()
  const settings = gatewayConfig({ PORT: '0', DATA_DIR: path.join(folder, dataDir), ...env })
  gateway = await startGatewayApp({ settings, log: makeLog({ level: 'silent', name: 'test' }) })
  return gateway
}

async function get(route: string, init?: RequestInit) {
  const response = await fetch(`${gateway?.addresses.public}${route}`, init)
  const json = (await response.json()) as JsonObject
  return { status: response.status, headers: response.headers, json }
}

const alice = gatewayIdentity({ seed: Buffer.alloc(32, 1), author: 'alice', name: 'agent' })
const announcement: Announcement = {
  name: 'analyst',
  description: '',
  did: alice.did,
  url: 'https://alice.example',
  card: { name: 'analyst', did: alice.did, version: '1' },
  skills: [],
  owner: alice.did,
  origin: 'registered',
  document: alice.document as unknown as JsonObject,
  keys: [alice.key.publicKeyBase58],
  verified: true,
  admitted: true,
}

test('GET /.well-known/did.json returns the document, without `created`, with its content type and caching headers', async () => {
  await start(identity)
  const { status, headers, json } = await get('/.well-known/did.json')
  expect(status).toBe(200)
  expect(headers.get('content-type')).toBe('application/did+json')
  expect(headers.get('cache-control')).toBe('public, max-age=300')
  const did = json['id'] as string
  expect(did).toMatch(/^did:parley:ada_at_example_com:front_door:[\da-f-]{36}$/)
  expect(json).toEqual({
    '@context': expect.any(Array),
    id: did,
    authentication: [
      {
        id: `${did}#key-1`,
        type: 'Ed25519VerificationKey2020',
        controller: did,
        publicKeyBase58: expect.any(String),
      },
    ],
  })
  expect((await get('/health')).json).toMatchObject({ application: { agent_did: did } })
})

test('the same seed gives the same DID on every replica', async () => {
  await start(identity)
  const first = await get('/.well-known/did.json')
  await start(identity, 'elsewhere')
  expect((await get('/.well-known/did.json')).json).toEqual(first.json)
})

test('a gateway without an identity returns 404 with the error envelope, and its entries have no proof', async () => {
  const { registry } = await start({})
  await registry.register(announcement)
  const { status, json } = await get('/.well-known/did.json')
  expect([status, json]).toMatchObject([404, { error: { code: -32040, data: { reason: 'did' } } }])
  expect((await get('/registry/agents/analyst')).json).toMatchObject({ proof: null })
})

async function proven() {
  const document = (await get('/.well-known/did.json')).json as unknown as DidDocument
  const entry = (await get('/registry/agents/analyst')).json
  return { document, entry, proof: entry['proof'] as string }
}

test('every entry has a proof, signed by the gateway, over its published fields', async () => {
  const { registry, addresses } = await start(identity)
  await registry.register(announcement)
  const { document, entry, proof } = await proven()
  expect(await verifyProof(proof, document)).toEqual({
    iss: document.id,
    sub: alice.did,
    keys: [alice.key.publicKeyBase58],
    url: `${addresses.public}/agents/analyst`,
    card_hash: cardHash(entry['card'] as JsonObject),
    verified: true,
    iat: expect.any(Number),
  })
  const header = JSON.parse(Buffer.from(proof.split('.')[0] ?? '', 'base64url').toString()) as object
  expect(header).toMatchObject({ alg: 'EdDSA', kid: `${document.id}#key-1` })
  expect((await get('/registry/agents')).json).toMatchObject({ agents: [{ proof }] })
})

test('a proof is created when the entry changes, not on each request or heartbeat', async () => {
  const { registry } = await start(identity)
  const { id } = await registry.register(announcement)
  const { proof } = await proven()
  registry.heartbeat(id, { queueDepth: 3 })
  expect((await proven()).proof).toBe(proof)
  await registry.register({ ...announcement, card: { ...announcement.card, version: '2' } })
  expect((await proven()).proof).not.toBe(proof)
})

test('a card with a lone surrogate gets no proof and causes no error', async () => {
  const { registry } = await start(identity)
  await registry.register({ ...announcement, card: { name: 'x', version: '\ud800' } })
  expect((await get('/registry/agents')).json).toMatchObject({ agents: [{ proof: null }] })
})

test.each<[string, (proof: string, document: DidDocument) => [string, unknown]]>([
  ['a byte of the payload is changed', (proof, document) => [flipped(proof, 1), document]],
  ['a byte of the signature is changed', (proof, document) => [flipped(proof, 2), document]],
  ['the header is changed', (proof, document) => [flipped(proof, 0), document]],
  ['it is unsigned', (proof, document) => [unsigned(proof), document]],
  ['it is empty', (_proof, document) => ['', document]],
  ['it is too long', (proof, document) => [proof + 'A'.repeat(200_000), document]],
  ['the document belongs to another gateway', (proof) => [proof, alice.document]],
  [
    'the document has another key under the same DID',
    (proof, document) => [
      proof,
      JSON.parse(
        JSON.stringify(document).replaceAll(
          document.authentication[0]?.publicKeyBase58 ?? '',
          alice.key.publicKeyBase58,
        ),
      ),
    ],
  ],
])('a proof is invalid when %s', async (_what, change) => {
  const { registry } = await start(identity)
  await registry.register(announcement)
  const { document, proof } = await proven()
  const [changed, by] = change(proof, document)
  await expect(verifyProof(changed, by as DidDocument)).rejects.toMatchObject({ message: expect.any(String) })
})

test('a proof signed with another key for the DID of the gateway is invalid', async () => {
  await start(identity)
  const document = (await get('/.well-known/did.json')).json as unknown as DidDocument
  const forger = new Voucher({ did: document.id, seed: Buffer.alloc(32, 8) })
  const proof = await forger.sign({ sub: null, keys: [], url: '', card_hash: '', verified: true })
  await expect(verifyProof(proof, document)).rejects.toThrow('not signed by the gateway')
})

function flipped(proof: string, part: number): string {
  const parts = proof.split('.')
  const bytes = Buffer.from(parts[part] ?? '', 'base64url')
  bytes[10] = (bytes[10] as number) ^ 1
  parts[part] = bytes.toString('base64url')
  return parts.join('.')
}

function unsigned(proof: string): string {
  const [, payload = ''] = proof.split('.')
  return `${Buffer.from('{"alg":"none"}').toString('base64url')}.${payload}.`
}

test('/did/resolve returns the document of the gateway and of every registered agent, by GET and POST', async () => {
  const { registry } = await start(identity)
  await registry.register(announcement)
  const own = (await get('/.well-known/did.json')).json
  for (const document of [own, announcement.document as JsonObject]) {
    const did = document['id'] as string
    const byGet = await get(`/did/resolve?did=${encodeURIComponent(did)}`)
    expect(byGet.headers.get('content-type')).toBe('application/did+json')
    expect(byGet.json).toEqual(document)
    const init = {
      method: 'POST',
      body: JSON.stringify({ did }),
      headers: { 'content-type': 'application/json' },
    }
    expect((await get('/did/resolve', init)).json).toEqual(document)
  }
})

test('/did/resolve resolves did:web by its method, not from the registry', async () => {
  const { registry } = await start(identity)
  const did = 'did:web:127.0.0.1'
  await registry.register({ ...announcement, did, owner: did, document: { id: did } })
  expect((await get(`/did/resolve?did=${did}`)).status).toBe(404)
})

test.each<[string, number, number]>([
  ['did:parley:bob:agent:11111111-2222-4333-8444-555555555555', 404, -32040],
  ['did:ion:abc', 404, -32040],
  ['did:web:127.0.0.1', 404, -32040],
  ['did:web:localhost%3A7400', 404, -32040],
  ['did:web:metadata.google.internal', 404, -32040],
  ['did:key:z6Mknonsense', 400, -32602],
  ['nonsense', 400, -32602],
  ['', 400, -32602],
  [`did:web:${'a'.repeat(10_000)}`, 400, -32602],
])('/did/resolve rejects %j', async (did, status, code) => {
  await start(identity)
  const headers = { 'content-type': 'application/json' }
  const answer = await get('/did/resolve', { method: 'POST', body: JSON.stringify({ did }), headers })
  expect([answer.status, answer.json]).toMatchObject([status, { error: { code } }])
})

test.each(['', '{}', '[]', '{"did":1}', 'x'])('/did/resolve with the body %j: 400', async (body) => {
  await start(identity)
  const headers = { 'content-type': 'application/json' }
  expect((await get('/did/resolve', { method: 'POST', body, headers })).status).toBe(400)
})
