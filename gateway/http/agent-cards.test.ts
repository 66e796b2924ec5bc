import { cardDigest, cardKeysOf, verifyCard } from '@parley/kit/did/card-signature'
import { isJsonObject } from '@parley/wire/model/json-text'
import { expect, test } from 'vitest'
import { z } from 'zod'
import {
  agent,
  bearer,
  embeddedOAuth,
  FakeAgent,
  fail,
  gateway,
  gatewayForEachTest,
  restart,
} from '../testing.ts'

gatewayForEachTest({
  SERVICE_GATEWAY_DID_SEED: Buffer.alloc(32, 9).toString('base64'),
  SERVICE_GATEWAY_AUTHOR: 'ops@example.com',
  SERVICE_GATEWAY_NAME: 'front',
})

const cardPaths = [
  '/.well-known/agent-card.json',
  '/a2a/v1/.well-known/agent-card.json',
  '/a2a/v0.3/.well-known/agent-card.json',
  '/a2a/v0.3/.well-known/agent.json',
  '/a2a/v0.3',
]

async function get(path: string, headers: Record<string, string> = {}) {
  const answer = await fetch(gateway().addresses.public + path, { headers })
  const json: unknown = answer.status === 304 ? {} : await answer.json()
  return { status: answer.status, headers: answer.headers, json: isJsonObject(json) ? json : {} }
}

async function verdictOf(card: Record<string, unknown>) {
  const document = (await get('/.well-known/did.json')).json
  const did = typeof document['id'] === 'string' ? document['id'] : ''
  return verifyCard(card, cardKeysOf(document, did))
}

const evil = 'https://evil.example'
const hostileCard = {
  name: 'poet',
  description: 'Writes poems',
  version: '1.2',
  url: evil,
  preferredTransport: 'GRPC',
  supportedInterfaces: [{ url: evil, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  additionalInterfaces: [{ url: evil, transport: 'JSONRPC' }],
  capabilities: { streaming: true, extensions: [{ uri: evil, params: { tokenUrl: evil } }] },
  securitySchemes: { x: { type: 'oauth2', flows: { clientCredentials: { tokenUrl: evil, scopes: {} } } } },
  security: [{ x: [] }],
  iconUrl: 'javascript:alert(1)',
  anything: { url: evil },
  signatures: [{ protected: 'e30', signature: 'AA' }],
}

test.each(cardPaths)('the card of a hostile agent at %s has no address but the gateway’s', async (path) => {
  await agent('poet', 'Writes poems', { card: hostileCard })
  const { status, json } = await get(`/agents/poet${path}`)
  expect([status, json['name'], json['version']]).toEqual([200, 'poet', '1.2'])
  expect(JSON.stringify(json)).not.toContain('evil')
  expect(JSON.stringify(json)).not.toContain('javascript')
  const text = JSON.stringify([json['url'], json['supportedInterfaces'], json['additionalInterfaces']])
  const urls = [...text.matchAll(/"(https?:[^"]*)"/g)].map(([, url]) => url)
  expect(urls.length).toBeGreaterThan(0)
  for (const url of urls) expect(url).toMatch(`${gateway().addresses.public}/agents/poet/a2a/`)
})

test.each(['', ...cardPaths])('the gateway signs the cards that it serves (%s)', async (path) => {
  await agent('poet', 'Writes poems', { card: hostileCard })
  const card = (await get(path === '' ? '/.well-known/agent-card.json' : `/agents/poet${path}`)).json
  const verdict = await verdictOf(card)
  expect(verdict).toMatchObject({
    verified: true,
    covers: 'card',
    kid: expect.stringMatching(/^did:.*#key-1$/),
  })
  expect(await verdictOf({ ...card, name: 'Eve' })).toMatchObject({ reason: 'mismatch' })
})

test('the card of a paid agent lists x402 over A2A, which is required if every skill has a price', async () => {
  const executionCost = { amount: '0.01', asset: '0xa', network: 'eip155:1', payTo: '0xb' }
  const free = { id: 'free', name: 'Free', description: 'Costs nothing' }
  await agent('seller', 'Sells', { card: { ...hostileCard, executionCost, skills: [free] } })
  const skills = [{ ...free, id: 'paid', executionCost }]
  await agent('merchant', 'Sells more', { card: { ...hostileCard, executionCost, skills } })
  await agent('giver', 'Gives')
  const requiredBy = async (slug: string) => {
    const { capabilities } = (await get(`/agents/${slug}/a2a/v1/.well-known/agent-card.json`)).json
    const extensions = isJsonObject(capabilities) ? capabilities['extensions'] : []
    const list = Array.isArray(extensions) ? extensions.filter(isJsonObject) : []
    return list.filter(({ uri }) => JSON.stringify(uri).includes('x402')).map(({ required }) => required)
  }
  expect(await requiredBy('merchant')).toEqual([true, undefined])
  expect(await requiredBy('seller')).toEqual([undefined, undefined])
  expect(await requiredBy('giver')).toEqual([])
})

test('the card states the hash of the original, its signature and the gateway that vouches for it', async () => {
  const did = 'did:parley:alice:agent:11111111-2222-4333-8444-555555555555'
  await agent('poet', 'Writes poems', { card: hostileCard, did })
  await agent('singer', 'Sings', { cardSignature: { verified: true, kid: `${did}#key-1` }, verified: false })
  const extensionsOf = async (slug: string) => {
    const { capabilities } = (await get(`/agents/${slug}/a2a/v1/.well-known/agent-card.json`)).json
    const extensions = isJsonObject(capabilities) ? capabilities['extensions'] : []
    const list = Array.isArray(extensions) ? extensions.filter(isJsonObject) : []
    return Object.fromEntries(list.map(({ uri, params }) => [uri, params]))
  }
  const { json: document } = await get('/.well-known/did.json')
  const poet = await extensionsOf('poet')
  expect(poet['urn:parley:a2a:vouched-card:v1']).toEqual({
    gateway: document['id'],
    did,
    verified: true,
    original: { sha256: cardDigest(hostileCard), signature: { verified: false, reason: 'unchecked' } },
  })
  expect(poet['urn:parley:a2a:signed-parts:v1']).toEqual({ did })
  const singer = await extensionsOf('singer')
  expect(singer).not.toHaveProperty(['urn:parley:a2a:signed-parts:v1'])
  expect(singer['urn:parley:a2a:vouched-card:v1']).toMatchObject({
    verified: false,
    did: null,
    original: { signature: { verified: true, kid: `${did}#key-1` } },
  })
})

test('clients may cache the cards of agents', async () => {
  await agent('poet', 'Writes poems')
  for (const path of ['/agents/poet/.well-known/agent-card.json', '/.well-known/agent-card.json']) {
    const { headers } = await get(path)
    expect(headers.get('vary')).toContain('A2A-Version, Authorization')
    expect(headers.get('cache-control')).toBe('public, max-age=60')
    const again = await get(path, { 'if-none-match': headers.get('etag') ?? '' })
    expect([again.status, again.headers.get('last-modified')]).toEqual([304, headers.get('last-modified')])
    const ofV1 = await get(path, { 'a2a-version': '1.0' })
    expect(ofV1.headers.get('etag')).not.toBe(headers.get('etag'))
    expect(ofV1.json).not.toHaveProperty('url')
  }
})

test('the card of an agent is served without a request to the agent, and that of a missing agent is not found', async () => {
  const stopped = await new FakeAgent().register('poet', 'Writes poems')
  await stopped.stop()
  expect((await get('/agents/poet/.well-known/agent-card.json')).status).toBe(200)
  for (const path of cardPaths) expect((await get(`/agents/nobody-here${path}`)).status).toBe(404)
})

test('the own card of the gateway lists its interfaces and the skills of its agents', async () => {
  await agent('poet', 'Writes poems')
  const { json } = await get('/a2a/v1/.well-known/agent-card.json')
  const url = `${gateway().addresses.public}/a2a/v1`
  expect(json).toMatchObject({
    name: 'parley',
    supportedInterfaces: expect.arrayContaining([expect.objectContaining({ url })]),
    capabilities: {
      extensions: [{ uri: 'urn:parley:a2a:negotiation:v1' }, { uri: 'urn:parley:a2a:decision-record:v1' }],
    },
    skills: [{ id: 'poet', tags: ['poet'] }],
  })
})

test('with its own OAuth server, the gateway states in the cards where clients get tokens', async () => {
  await restart(embeddedOAuth)
  await agent('poet', 'Writes poems')
  const tokenUrl = `${gateway().addresses.public}/oauth2/token`
  for (const prefix of ['', '/agents/poet']) {
    const ofV1 = (await get(`${prefix}/a2a/v1/.well-known/agent-card.json`)).json
    expect(ofV1).toMatchObject({
      securitySchemes: { oauth2: { oauth2SecurityScheme: { flows: { clientCredentials: { tokenUrl } } } } },
      securityRequirements: [{ schemes: { bearer: {} } }, { schemes: { oauth2: {} } }],
    })
    const ofV03 = (await get(`${prefix}/a2a/v0.3/.well-known/agent-card.json`)).json
    expect(ofV03).toMatchObject({
      securitySchemes: { oauth2: { type: 'oauth2', flows: { clientCredentials: { tokenUrl } } } },
      security: [{ bearer: ['agent:read', 'agent:write'] }, { oauth2: ['agent:read', 'agent:write'] }],
    })
  }
  expect((await fetch(tokenUrl, { method: 'POST' })).status).not.toBe(404)
})

const extended = {
  ...hostileCard,
  skills: [{ id: 'more', name: 'More', description: 'For callers', tags: ['x'] }],
}

test.each([
  ['/a2a/v1', 'GetExtendedAgentCard'],
  ['/', 'GetExtendedAgentCard'],
  ['/a2a/v0.3', 'agent/getAuthenticatedExtendedCard'],
  ['/', 'agent/getAuthenticatedExtendedCard'],
])('an extended card at %s (%s) has no address but the gateway’s', async (path, method) => {
  const poet = await new FakeAgent().register('poet', 'Writes poems', { card: hostileCard })
  poet.on[method] = () => extended
  const answer = await callMethod(`/agents/poet${path}`, method)
  expect(answer.result).toMatchObject({ name: 'poet', skills: [{ id: 'more' }] })
  const { anything: _kept, iconUrl: _link, capabilities: _own, ...read } = answer.result
  expect(JSON.stringify(read)).not.toContain('evil')
  if (path === '/' && method.startsWith('agent/')) return
  expect(JSON.stringify(answer)).not.toContain('evil')
  expect(await verdictOf(answer.result)).toMatchObject({ verified: true, covers: 'card' })
})

test('a card in an answer with an error status does not pass', async () => {
  const poet = await new FakeAgent().register('poet', 'Writes poems')
  poet.on['GetExtendedAgentCard'] = ({ response, id }) => {
    response.writeHead(400, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ jsonrpc: '2.0', id, result: hostileCard }))
  }
  const { result } = await callMethod('/agents/poet/a2a/v1', 'GetExtendedAgentCard')
  expect(JSON.stringify(result)).not.toContain('evil')
})

test('an extended card that is not a card is an error, and errors of the agent pass', async () => {
  const poet = await new FakeAgent().register('poet', 'Writes poems')
  poet.on['GetExtendedAgentCard'] = () => 'https://evil.example'
  const { error } = await callMethod('/agents/poet/a2a/v1', 'GetExtendedAgentCard')
  expect(error.message).toContain('not a card')
  poet.on['GetExtendedAgentCard'] = ({ response, id }) => fail(response, id, 200, -32007, {})
  expect((await callMethod('/agents/poet/a2a/v1', 'GetExtendedAgentCard')).error.code).toBe(-32007)
})

async function callMethod(path: string, method: string) {
  const answer = await fetch(gateway().addresses.public + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: bearer('alice') },
    body: JSON.stringify({ jsonrpc: '2.0', id: 7, method, params: {} }),
  })
  return z
    .object({
      result: z.record(z.string(), z.unknown()).default({}),
      error: z.object({ code: z.number(), message: z.string() }).default({ code: 0, message: '' }),
    })
    .parse(await answer.json())
}
