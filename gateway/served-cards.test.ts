import { mkdir, writeFile } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'
import { type CardAlgorithm, cardDigest, cardKeysOf, verifyCard } from '@parley/kit/did/card-signature'
import { type ForeignAgent, startForeignAgent } from '@parley/tools/testing/foreign-agent'
import { extensionUris } from '@parley/wire/codecs/extensions'
import { isJsonObject, jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { alice, RegistrationGateway } from './registration/testing.ts'

/** Every card that the gateway serves, of every kind of agent, in every dialect and at every path. */

let deployment: RegistrationGateway
let foreign: ForeignAgent
let token: string
let gatewayDid: string
let keyOf: ReturnType<typeof cardKeysOf>
/** Requests to the server that the cards of the agents name in `jku`. */
const jkuRequests: string[] = []
/** The addresses of the agents themselves, by slug, and that of the server with the keys. */
const own: Record<string, string> = {}
/** The cards that the gateway has read, by slug. */
const originals: Record<string, JsonObject> = {}

const slugs = ['supervised', 'external', 'relayed'] as const
const identity = {
  SERVICE_GATEWAY_DID_SEED: Buffer.alloc(32, 9).toString('base64'),
  SERVICE_GATEWAY_AUTHOR: 'ops@example.com',
  SERVICE_GATEWAY_NAME: 'front',
}

beforeAll(async () => {
  const keys = http.createServer((request, response) => {
    jkuRequests.push(request.url ?? '')
    response.end('{"keys":[]}')
  })
  await new Promise<void>((resolve) => keys.listen(0, '127.0.0.1', resolve))
  const address = keys.address()
  own['keys'] = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`
  deployment = await RegistrationGateway.open()
  const agentsDir = path.join(deployment.folder, 'agents')
  await addSupervised(path.join(agentsDir, 'supervised'))
  await deployment.start({ ...identity, CARD_ES256: 'yes', PATH: process.env['PATH'] }, {}, { agentsDir })
  await deployment.gateway.supervisor?.settled()
  token = await deployment.carol()
  own['supervised'] = deployment.gateway.registry.bySlug('supervised')?.url ?? ''
  originals['supervised'] = await read(`${own['supervised']}/.well-known/agent.json`)
  await addExternal()
  await addRelayed()
  const document = await read('/.well-known/did.json')
  gatewayDid = z.string().parse(document['id'])
  keyOf = cardKeysOf(document, gatewayDid)
  return () => keys.close()
}, 60_000)
afterAll(async () => {
  await deployment[Symbol.asyncDispose]()
  await foreign[Symbol.asyncDispose]()
})

async function addSupervised(folder: string): Promise<void> {
  const defineAgent = pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href
  await mkdir(folder, { recursive: true })
  await writeFile(
    path.join(folder, 'agent.js'),
    `import { defineAgent } from ${JSON.stringify(defineAgent)}
     export default defineAgent({
       name: 'supervised', description: 'Sums up a text',
       skills: [{ id: 'sum', name: 'Sum', description: 'Sums up', tags: ['text'] }],
       extendedCard: { skills: [{ id: 'more', name: 'More', description: 'For callers', tags: ['x'] }] },
       handle: () => 'done',
     })`,
  )
}

/** A card with the agent's address in every field that may have one, and a signature with a key at another server. */
function hostileCard(name: string, url: string): JsonObject {
  const header = { alg: 'ES256', kid: `${alice.did}#key-1`, jku: `${own['keys']}/keys`, jwk: { kty: 'EC' } }
  return {
    name,
    description: 'Answers',
    version: '1',
    url,
    preferredTransport: 'JSONRPC',
    supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    additionalInterfaces: [{ url, transport: 'HTTP+JSON' }],
    capabilities: { streaming: true, extendedAgentCard: true, extensions: [{ uri: url, params: { url } }] },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [{ id: 'more', name: 'More', description: 'For callers', tags: ['x'] }],
    other: { url },
    signatures: [{ protected: Buffer.from(JSON.stringify(header)).toString('base64url'), signature: 'AAAA' }],
  }
}

async function addExternal(): Promise<void> {
  let card: JsonObject = {}
  const isRpc = (body: string) => jsonObjectOf(body)?.['method'] !== undefined
  const { url } = await deployment.serveAgent({
    identity: alice,
    name: 'external',
    // The default routes add the name and the DID.
    get card() {
      return card
    },
    otherwise: (_url, body) =>
      isRpc(body) ? { jsonrpc: '2.0', id: jsonObjectOf(body)?.['id'], result: card } : card,
  })
  card = hostileCard('external', url)
  own['external'] = url
  originals['external'] = await read(`${url}/.well-known/agent.json`)
  await deployment.join(url, await deployment.registered(alice), alice)
  await deployment.send('POST', '/registry/agents/external/admit', await deployment.operator(), {})
}

async function addRelayed(): Promise<void> {
  foreign = await startForeignAgent((_request, reply) => reply.result(foreign.card))
  own['relayed'] = foreign.url
  const card = hostileCard('relayed', foreign.url)
  foreign.card = card
  originals['relayed'] = card
  await deployment.join(foreign.url, token)
  await deployment.send('POST', '/registry/agents/relayed/admit', await deployment.operator(), {})
}

interface Sent {
  method?: string
  headers?: http.OutgoingHttpHeaders
  body?: string | Buffer
  chunked?: boolean
}

/** Sends a request with `node:http`, which can send a body with GET. */
async function send(url: string, { method = 'GET', headers = {}, body, chunked }: Sent = {}) {
  const at = new URL(url, deployment.gateway.addresses.public)
  const length = { 'content-length': String(Buffer.byteLength(body ?? '')) }
  const request = http.request(at, {
    // The unchanged path, because `URL` normalizes it.
    path: url.startsWith('/') ? url : `${at.pathname}${at.search}`,
    method,
    headers: {
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
      ...(chunked || 'transfer-encoding' in headers
        ? { 'transfer-encoding': 'chunked' }
        : body !== undefined && length),
    },
  })
  const answered = new Promise<http.IncomingMessage>((resolve, reject) =>
    request.once('response', resolve).once('error', reject),
  )
  request.end(body)
  const response = await answered
  const raw = await text(response)
  return { status: response.statusCode, raw, json: jsonObjectOf(raw) ?? {} }
}

const read = async (url: string) => (await send(url)).json
const authorized = () => ({ authorization: `Bearer ${token}` })

/** The addresses in the card that clients call or from which they get tokens, and that are not below this path of the gateway. */
function foreignAddressesIn(card: JsonObject, prefix: string): unknown[] {
  const { url, supportedInterfaces, additionalInterfaces, securitySchemes } = card
  const lists = JSON.stringify([url, supportedInterfaces, additionalInterfaces, securitySchemes])
  const addresses = [...lists.matchAll(/"(https?:[^"]*)"/g)].map(([, address]) => address ?? '')
  if (addresses.length === 0) throw new Error('The card has no address.')
  const { public: origin } = deployment.gateway.addresses
  const allowed = [`${origin}${prefix}`, `${origin}/oauth2`]
  return addresses.filter((address) => !allowed.some((one) => `${address}/`.startsWith(`${one}/`)))
}

/** The agents' own addresses that the text contains. */
const agentAddressesIn = (raw: string) => Object.values(own).filter((address) => raw.includes(address))

/** Verifies with each algorithm by itself, and lists the fields of the protected headers. */
async function signaturesOf(card: JsonObject) {
  const verdicts = []
  for (const alg of ['EdDSA', 'ES256'] satisfies CardAlgorithm[]) {
    const only = (kid: string, given: CardAlgorithm) => (given === alg ? keyOf(kid, given) : undefined)
    const changed = await verifyCard({ ...card, name: 'Eve' }, only)
    verdicts.push({ ...(await verifyCard(card, only)), changed: changed.verified })
  }
  const signatures = z
    .array(z.object({ protected: z.string() }))
    .catch([])
    .parse(card['signatures'])
  const headers = signatures.flatMap((one) =>
    Object.keys(jsonObjectOf(Buffer.from(one.protected, 'base64url').toString()) ?? {}),
  )
  return { verdicts, fields: [...new Set(headers)].sort() }
}

/** Both signatures of the gateway, without a `jku`. */
const ofGateway = () => {
  const valid = { verified: true, covers: 'card', changed: false }
  const kid = `${gatewayDid}#key-1`
  return {
    verdicts: [
      { ...valid, alg: 'EdDSA', kid },
      { ...valid, alg: 'ES256', kid: `${kid}-es256` },
    ],
    fields: ['alg', 'kid', 'typ'],
  }
}

function vouchedIn({ capabilities }: JsonObject): unknown {
  const extensions = isJsonObject(capabilities) ? capabilities['extensions'] : []
  const list = Array.isArray(extensions) ? extensions.filter(isJsonObject) : []
  return list.find(({ uri }) => uri === extensionUris.vouchedCard)?.['params']
}

const cardPaths = [
  '/.well-known/agent-card.json',
  '/a2a/v1/.well-known/agent-card.json',
  '/a2a/v0.3/.well-known/agent-card.json',
  '/a2a/v0.3/.well-known/agent.json',
  '/a2a/v0.3',
]
const publicCards = cardPaths.flatMap((at) => ['', '1.0', '0.3'].map((version) => [at, version] as const))

describe.each(slugs)('the card of the %s agent', (slug) => {
  test.each(publicCards)(
    'at %s (version "%s") has no address but the gateway’s, and its signatures',
    async (at, version) => {
      const { status, raw, json } = await send(`/agents/${slug}${at}`, {
        headers: { 'a2a-version': version },
      })
      expect([status, json['name'], agentAddressesIn(raw)]).toEqual([200, slug, []])
      expect(foreignAddressesIn(json, `/agents/${slug}/a2a`)).toEqual([])
      expect(await signaturesOf(json)).toEqual(ofGateway())
      expect(vouchedIn(json)).toMatchObject({
        gateway: gatewayDid,
        verified: slug !== 'relayed',
        original: { sha256: cardDigest(originals[slug] ?? {}), signature: { verified: false } },
      })
    },
  )

  test('at agent.json names the gateway’s addresses only, and has no signature', async () => {
    const card = await read(`/agents/${slug}/.well-known/agent.json`)
    expect(card).not.toHaveProperty('signatures')
    expect(foreignAddressesIn(card, `/agents/${slug}`)).toEqual([])
  })

  test('declares an extended card if callers can get one', async () => {
    const ofV1 = await read(`/agents/${slug}/a2a/v1/.well-known/agent-card.json`)
    expect(ofV1['capabilities']).toMatchObject({ extendedAgentCard: slug !== 'relayed' })
    const ofV03 = await read(`/agents/${slug}/a2a/v0.3/.well-known/agent-card.json`)
    expect(ofV03['supportsAuthenticatedExtendedCard']).toBe(slug !== 'relayed')
  })
})

test.each(publicCards)(
  'the gateway’s own card at %s (version "%s") has its addresses and signatures',
  async (at, version) => {
    const { raw, json } = await send(at, { headers: { 'a2a-version': version } })
    expect([agentAddressesIn(raw), foreignAddressesIn(json, '')]).toEqual([[], []])
    expect(await signaturesOf(json)).toEqual(ofGateway())
  },
)

const rpc = (method: string, params: object = {}) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
const v1 = 'GetExtendedAgentCard'
const v03 = 'agent/getAuthenticatedExtendedCard'
/** The same call in other bytes. */
const escaped = (method: string) => rpc(method).replaceAll('x', '\\u0078')
const post = (body: string | Buffer, more: Sent = {}): Sent => ({ method: 'POST', body, ...more })

/** The path, with `*` for the slug, and the request. */
const extendedCards: [string, string, Sent][] = [
  ['JSON-RPC 1.0', '/agents/*/a2a/v1', post(rpc(v1))],
  ['JSON-RPC 1.0 with a slash', '/agents/*/a2a/v1/', post(rpc(v1))],
  ['JSON-RPC 1.0 at the root', '/agents/*/', post(rpc(v1))],
  ['JSON-RPC 0.3', '/agents/*/a2a/v0.3', post(rpc(v03))],
  ['JSON-RPC 0.3 with a slash', '/agents/*/a2a/v0.3/', post(rpc(v03))],
  ['REST 1.0', '/agents/*/a2a/v1/extendedAgentCard', {}],
  ['REST 1.0 at the root', '/agents/*/extendedAgentCard', {}],
  ['REST 1.0 with a tenant', '/agents/*/a2a/v1/tenant/extendedAgentCard', {}],
  ['REST 1.0 with a query', '/agents/*/a2a/v1/extendedAgentCard?historyLength=1', {}],
  ['REST 1.0 with a body', '/agents/*/a2a/v1/extendedAgentCard', { body: '{}' }],
  ['REST 1.0 with a chunked body', '/agents/*/extendedAgentCard', { body: '{}', chunked: true }],
  ['REST 0.3', '/agents/*/a2a/v0.3/v1/card', {}],
  ['an escaped method', '/agents/*/a2a/v1', post(escaped(v1))],
  ['an escaped method of 0.3', '/agents/*/a2a/v0.3', post(escaped(v03))],
  ['an escaped method in a chunked body', '/agents/*/a2a/v1', post(escaped(v1), { chunked: true })],
  ['a chunked body', '/agents/*/a2a/v1', post(rpc(v1), { chunked: true })],
  ['a chunked body of 0.3', '/agents/*/a2a/v0.3', post(rpc(v03), { chunked: true })],
  ['the gateway’s address and a tenant', '/a2a/v1', post(rpc(v1, { tenant: '*' }))],
  ['the gateway’s address in REST', '/a2a/v1/*/extendedAgentCard', {}],
]
const ownDialect: [string, string, Sent][] = [
  ['the root', '/agents/*/', post(rpc(v03))],
  ['the root, chunked', '/agents/*/', post(rpc(v03), { chunked: true })],
  ['the root, escaped', '/agents/*/', post(escaped(v03))],
  ['the path of the method', `/agents/*/${v03}`, post(rpc(v03))],
]

/** Replaces `*` with the slug. */
const ofSlug = (slug: string, [at, sent]: [string, Sent]): [string, Sent] => [
  at.replaceAll('*', slug),
  {
    ...sent,
    ...(typeof sent.body === 'string' && { body: sent.body.replaceAll('*', slug) }),
    headers: authorized(),
  },
]

describe.each(['supervised', 'external'])('the extended card of the %s agent', (slug) => {
  test.each(extendedCards)(
    'requested by %s has no address but the gateway’s, and its signatures',
    async (_by, ...given) => {
      const { raw, json } = await send(...ofSlug(slug, given))
      const { result = json } = json
      const card = isJsonObject(result) ? result : {}
      expect(card).toMatchObject({ name: slug })
      expect([agentAddressesIn(raw), foreignAddressesIn(card, `/agents/${slug}/a2a`)]).toEqual([[], []])
      expect(await signaturesOf(card)).toEqual(ofGateway())
    },
  )

  test.each(ownDialect)(
    'requested in Parley’s own dialect (%s) names the gateway’s addresses only',
    async (_by, ...given) => {
      const { result } = (await send(...ofSlug(slug, given))).json
      const card = isJsonObject(result) ? result : {}
      expect(card).toMatchObject({ name: slug })
      expect(foreignAddressesIn(card, `/agents/${slug}`)).toEqual([])
    },
  )
})

const long = 'x'.repeat(300_000)
const methodLast = `{"params":{"more":"${long}"},"jsonrpc":"2.0","id":1,"method":"${v1}"}`

test.each([
  ['supervised', 'is refused', rpc(v1, { more: long }), 413],
  ['supervised', 'has no address but the gateway’s', methodLast, 200],
  ['external', 'has no address but the gateway’s', rpc(v1, { more: long }), 200],
  ['external', 'has no address but the gateway’s', methodLast, 200],
  ['external', 'is refused above the limit', rpc(v1, { more: 'x'.repeat(11_000_000) }), 413],
])(
  'the extended card of the %s agent, requested with a long body, %s',
  async (slug, _what, body, expected) => {
    for (const chunked of [true, false]) {
      const { status, raw } = await send(...ofSlug(slug, ['/agents/*/a2a/v1', post(body, { chunked })]))
      expect([status, agentAddressesIn(raw)]).toEqual([expected, []])
    }
  },
)

test.each([...extendedCards, ...ownDialect])(
  'the relay has no extended cards (%s)',
  async (_by, ...given) => {
    const { raw, json } = await send(...ofSlug('relayed', given))
    expect([agentAddressesIn(raw), 'result' in json, 'skills' in json]).toEqual([[], false, false])
  },
)

test.each<[string, string, http.OutgoingHttpHeaders]>([
  ['text/plain', rpc(v1), { 'content-type': 'text/plain' }],
  ['text/plain, chunked', rpc(v1), { 'content-type': 'text/plain', 'transfer-encoding': 'chunked' }],
  ['no type', rpc(v1), { 'content-type': '' }],
  ['a method of another dialect', rpc(v1), {}],
  ['gzip', rpc(v1), { 'content-encoding': 'gzip' }],
  ['escapes', rpc(v1).replace('Ext', '\\u0045xt'), {}],
  ['a batch', `[${rpc(v1)}]`, {}],
  ['invalid JSON', `${rpc(v1)},`, {}],
])('no card of an external agent passes for a body in an unusual form (%s)', async (_what, body, headers) => {
  const bytes = headers['content-encoding'] === 'gzip' ? gzipSync(body) : body
  for (const at of ['/', '/a2a/v1', '/a2a/v0.3']) {
    const { raw } = await send(
      `/agents/external${at}`,
      post(bytes, { headers: { ...authorized(), ...headers } }),
    )
    expect(agentAddressesIn(raw)).toEqual([])
  }
})

test.each([
  '/v1/card',
  '/V1/Card',
  '/v1/card/',
  '/agent/authenticatedExtendedCard',
  '/.well-known/agent-card.json/',
  '//.well-known/agent-card.json',
  '/.well-known/agent%2Dcard.json',
  '/x/.well-known/agent.json',
  '/a2a/v1/extendedAgentCard/',
])('no card of an external agent passes at %s', async (at) => {
  const { raw } = await send(`/agents/external${at}`, { headers: authorized() })
  expect(agentAddressesIn(raw)).toEqual([])
})

test('the card of a supervised agent at its own address verifies with the document that the gateway resolves', async () => {
  const card = await read(`${own['supervised']}/.well-known/agent-card.json`)
  const did = z.string().parse(originals['supervised']?.['did'])
  const ofAgent = cardKeysOf(await read(`/did/resolve?did=${encodeURIComponent(did)}`), did)
  for (const alg of ['EdDSA', 'ES256'] satisfies CardAlgorithm[]) {
    const only = (kid: string, given: CardAlgorithm) => (given === alg ? ofAgent(kid, given) : undefined)
    expect(await verifyCard(card, only)).toMatchObject({ verified: true, alg, covers: 'card' })
  }
})

test('no server that a card names in `jku` is contacted', () => {
  expect(jkuRequests).toEqual([])
})
