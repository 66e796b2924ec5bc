import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { answerChallenge, type Challenge } from '../../shared/identity/challenge.ts'
import { gatewayIdentity, type Identity } from '../../shared/identity/identity.ts'
import { signRequest } from '../../shared/identity/signature.ts'
import { makeLog } from '../../shared/process/log.ts'
import { type GatewayApp, startGatewayApp } from '../app.ts'
import { gatewayConfig } from '../config.ts'
import type { OutsideOptions } from './outside.ts'

let folder: string
let stack: AsyncDisposableStack
let gateway: GatewayApp
let logged: string[]

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-join-'))
  stack = new AsyncDisposableStack()
  logged = []
})

afterEach(async () => {
  await stack.disposeAsync()
  await rm(folder, { recursive: true, force: true })
})

async function start(
  env: NodeJS.ProcessEnv = {},
  outside: Partial<OutsideOptions> = {},
  more: { agentsDir?: string } = {},
): Promise<GatewayApp> {
  const settings = gatewayConfig({
    PORT: '0',
    DATA_DIR: path.join(folder, 'data'),
    REGISTRY_ALLOWED_HOSTS: '127.0.0.1',
    ...env,
  })
  const destination = { write: (line: string) => void logged.push(line) }
  const log = makeLog({ level: 'info', name: 'test', destination })
  gateway = stack.use(
    await startGatewayApp({ settings, log, outside: { timeoutMs: 500, ...outside }, ...more }),
  )
  return gateway
}

const production = { NODE_ENV: 'production', PARLEY_EMBEDDED_OAUTH: 'yes' }
const seedOf = (byte: number) => Buffer.alloc(32, byte)
/** An agent's identity; `gatewayIdentity` makes one of any seed. */
const identityOf = (byte: number) => gatewayIdentity({ seed: seedOf(byte), author: 'alice', name: 'agent' })
const alice = identityOf(1)
const bob = identityOf(2)

interface Played {
  identity?: Identity
  name?: string
  card?: Record<string, unknown>
  document?: unknown
  /** What it does with a challenge. Default: what is right. */
  challenge?: 'no route' | 'silence' | Identity | ((asked: Challenge) => unknown)
  /** Answers everything else first. */
  before?: http.RequestListener
}

/** An agent's server, as honest as the test wants; `calls` are the requests that reach it. */
async function playAgent(played: Played) {
  const { identity, name = 'stranger' } = played
  const calls: { url: string; authorization: string | undefined }[] = []
  const server = http.createServer((request, response) => {
    const { url = '', headers } = request
    calls.push({ url, authorization: headers.authorization })
    if (played.before !== undefined) return played.before(request, response)
    const answer = async () => {
      const json = await answerOf(url, await text(request), played, name)
      if (json === 'silence') return
      if (json === undefined) response.writeHead(404).end('{}')
      else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(json))
    }
    void answer()
  })
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  stack.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls, identity }
}

async function answerOf(url: string, body: string, played: Played, name: string): Promise<unknown> {
  const { identity, challenge = identity } = played
  const did = identity?.did
  if (url === '/.well-known/agent.json') return { name, ...(did && { did }), ...played.card }
  if (url === '/agent/skills') return { skills: [{ id: 'greet', name: 'Greet' }] }
  if (url.startsWith('/did/resolve')) return played.document ?? identity?.document
  if (url === '/health') return { ready: true }
  if (url === '/echo') return { echo: true }
  if (url !== '/did/challenge' || challenge === undefined || challenge === 'no route') return undefined
  if (challenge === 'silence') return 'silence'
  const asked = JSON.parse(body) as Challenge
  if (typeof challenge === 'function') return challenge(asked)
  return answerChallenge(asked, did ?? '', challenge.key)
}

async function clientToken(file: string, scope?: string): Promise<string> {
  const { token_url, ...client } = JSON.parse(
    await readFile(path.join(folder, 'data', file), 'utf8'),
  ) as Record<string, string>
  return tokenFor(token_url ?? '', client, scope)
}

async function tokenFor(tokenUrl: string, client: Record<string, string | undefined>, scope?: string) {
  const form = { grant_type: 'client_credentials', ...client, ...(scope !== undefined && { scope }) }
  const answer = await fetch(tokenUrl, { method: 'POST', body: new URLSearchParams(form as never) })
  return ((await answer.json()) as { access_token: string }).access_token
}

const operator = () => clientToken('oauth/operator-client.json', 'agent:admin')
const carol = () => clientToken('dev-client.json')

/** A client of its own at the OAuth server, named after a DID, with a key. */
async function register(identity: Identity): Promise<{ client_id: string; client_secret: string }> {
  const initial = await readFile(path.join(folder, 'data', 'oauth', 'initial-access-token'), 'utf8')
  const body = JSON.stringify({
    issuer: `${gateway.addresses.public}/oauth2`,
    client_id: identity.did,
    client_name: 'stranger',
    grant_types: ['client_credentials'],
    public_key: identity.key.publicKeyBase58,
  })
  const answer = await fetch(`${gateway.addresses.public}/oauth2/register`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${initial.trim()}`,
      'content-type': 'application/json',
      ...signRequest({ ...identity, body }),
    },
    body,
  })
  const { client_id, client_secret } = (await answer.json()) as Record<string, string>
  return { client_id: client_id ?? '', client_secret: client_secret ?? '' }
}

/** A token of such a client. */
async function registered(identity: Identity): Promise<string> {
  return tokenFor(`${gateway.addresses.public}/oauth2/token`, await register(identity))
}

async function send(method: string, route: string, bearer: string, body?: object, signer?: Identity) {
  const sent = body === undefined ? '' : JSON.stringify(body)
  const response = await fetch(`${gateway.addresses.public}${route}`, {
    method,
    headers: {
      ...(bearer !== '' && { authorization: `Bearer ${bearer}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...(signer !== undefined && signRequest({ ...signer, body: sent })),
    },
    ...(body !== undefined && { body: sent }),
  })
  const json = (await response.json()) as Record<string, unknown>
  return {
    status: response.status,
    json,
    error: json['error'] as { code: number; data: { reason?: string } },
  }
}

const join = (url: string, bearer: string, signer?: Identity) =>
  send('POST', '/registry/agents', bearer, { url }, signer)

test('an agent that answers the challenge is verified: 201, and 200 when it comes again', async () => {
  await start()
  const agent = await playAgent({ identity: alice })
  const bearer = await carol()
  const first = await join(agent.url, bearer)
  expect(first.status).toBe(201)
  expect(first.json).toMatchObject({
    slug: 'stranger',
    did: alice.did,
    verified: true,
    admitted: true,
    keys: [alice.key.publicKeyBase58],
    skills: [{ id: 'greet' }],
    card_changes: [],
  })
  expect((await join(`${agent.url}/`, bearer)).status).toBe(200)
  expect(agent.calls.every(({ authorization }) => authorization === undefined)).toBe(true)
})

test('a request signed with the key of its DID makes the entry verified, without a challenge', async () => {
  await start()
  const agent = await playAgent({ identity: alice, challenge: 'no route' })
  const bearer = await registered(alice)
  expect((await join(agent.url, bearer, alice)).json).toMatchObject({ verified: true, did: alice.did })
  expect(agent.calls.map(({ url }) => url)).not.toContain('/did/challenge')
})

test.each<[string, Identity | undefined, string]>([
  ['does not sign', undefined, 'missing_signature_headers'],
  ['signs with a key of its own', bob, 'crypto_mismatch'],
])('a client named after the DID that %s is not the agent', async (_what, signer, reason) => {
  await start()
  const agent = await playAgent({ identity: alice })
  const bearer = await registered(alice)
  const answer = await join(agent.url, bearer, signer && { ...signer, did: alice.did })
  expect([answer.status, answer.error.code, answer.error.data.reason]).toEqual([403, -32012, reason])
  expect(gateway.registry.all()).toEqual([])
})

test('an A2A agent without DID is registered by its card, unverified, and probed', async () => {
  await start()
  const agent = await playAgent({})
  expect((await join(agent.url, await carol())).json).toMatchObject({ did: null, verified: false, keys: [] })
})

test('an agent without a challenge route is registered unverified', async () => {
  await start()
  const agent = await playAgent({ identity: alice, challenge: 'no route' })
  expect((await join(agent.url, await carol())).json).toMatchObject({ did: alice.did, verified: false })
})

test('a DID of another method stands in the entry unverified; did:key is proven like ours', async () => {
  await start()
  const foreign = await playAgent({ card: { did: 'did:ion:abc' } })
  expect((await join(foreign.url, await carol())).json).toMatchObject({ did: 'did:ion:abc', verified: false })
})

test.each<[string, Played, number, string]>([
  ['shows the document of another', { identity: alice, document: bob.document }, 400, 'did_document'],
  ['shows no document', { identity: alice, document: [] }, 400, 'not_json'],
  [
    'puts its own key under the DID of another',
    {
      identity: alice,
      document: JSON.parse(
        JSON.stringify(alice.document).replaceAll(alice.key.publicKeyBase58, bob.key.publicKeyBase58),
      ),
    },
    400,
    'did_document',
  ],
  ['has not the key of its DID', { identity: alice, challenge: bob }, 403, 'crypto_mismatch'],
  [
    'answers the challenge of another gateway',
    {
      identity: alice,
      challenge: (asked) =>
        answerChallenge({ ...asked, gateway: 'https://other.example' }, alice.did, alice.key),
    },
    403,
    'crypto_mismatch',
  ],
  [
    'hands on the answer that another agent gave for itself',
    {
      identity: alice,
      challenge: (asked) => answerChallenge({ ...asked, url: 'https://alice.example' }, alice.did, alice.key),
    },
    403,
    'crypto_mismatch',
  ],
  [
    'answers an old challenge',
    {
      identity: alice,
      challenge: (asked) => answerChallenge({ ...asked, nonce: 'A'.repeat(43) }, alice.did, alice.key),
    },
    403,
    'crypto_mismatch',
  ],
  ['answers the challenge with nonsense', { identity: alice, challenge: () => [1] }, 403, 'crypto_mismatch'],
  ['never answers the challenge', { identity: alice, challenge: 'silence' }, 400, 'timeout'],
  ['has a malformed DID on its card', { card: { did: 'did:parley:a b' } }, 400, 'did'],
  [
    'has a DID on its card that cannot be resolved',
    { card: { did: 'did:web:127.0.0.1' } },
    400,
    'did_document',
  ],
  ['has a card without a name', { card: { name: '' } }, 400, 'card'],
  ['has no card', { before: (_request, response) => response.writeHead(404).end() }, 400, 'status'],
  [
    'redirects elsewhere',
    { before: (_request, response) => response.writeHead(302, { location: 'http://127.0.0.1:1/' }).end() },
    400,
    'status',
  ],
  ['never answers', { before: () => undefined }, 400, 'timeout'],
  [
    'answers 1 GB',
    {
      before: (_request, response) => {
        response.writeHead(200, { 'content-length': String(1024 ** 3) })
        const more = () => response.write('x'.repeat(65_536), () => response.destroyed || more())
        more()
      },
    },
    400,
    'too_large',
  ],
  [
    'answers without end',
    {
      before: (_request, response) => {
        const more = () => response.write('x'.repeat(65_536), () => response.destroyed || more())
        more()
      },
    },
    400,
    'too_large',
  ],
  [
    'is compressed',
    { before: (_q, r) => r.writeHead(200, { 'content-encoding': 'gzip' }).end() },
    400,
    'encoding',
  ],
])('an agent that %s does not come in', async (_what, played, status, reason) => {
  await start()
  const agent = await playAgent(played)
  const answer = await join(agent.url, await carol())
  expect([answer.status, answer.error.data.reason]).toEqual([status, reason])
  expect(gateway.registry.all()).toEqual([])
})

test.each<[unknown, string | undefined]>([
  ['http://127.0.0.1:1', 'not_public'],
  ['http://localhost', 'local_name'],
  ['http://[::1]', 'not_public'],
  ['http://0x7f.1', 'not_public'],
  ['http://10.0.0.1', 'not_public'],
  ['http://169.254.169.254/latest', 'not_public'],
  ['http://private.example', 'not_public'],
  ['http://half-private.example', 'not_public'],
  ['http://metadata.google.internal', 'local_name'],
  ['http://nowhere.example', 'name_not_found'],
  ['ftp://example.com', 'scheme'],
  ['file:///etc/passwd', 'scheme'],
  ['http://user:pass@example.com', 'credentials'],
  ['http://example.com/?a=b', 'query'],
  [`http://example.com/${'a'.repeat(10_000)}`, 'too_long'],
  ['nonsense', 'malformed'],
  ['', undefined],
  [42, undefined],
  [null, undefined],
  [['http://example.com'], undefined],
])('the address %j is refused: 400 -32602', async (url, reason) => {
  const names: Record<string, string[]> = {
    'private.example': ['192.168.0.1'],
    'half-private.example': ['203.0.113.9', '10.0.0.1'],
  }
  const resolver = async (host: string) => names[host] ?? Promise.reject(new Error('no such name'))
  await start({ REGISTRY_ALLOWED_HOSTS: '' }, { resolver })
  const answer = await send('POST', '/registry/agents', await carol(), { url })
  expect([answer.status, answer.error.code, answer.error.data.reason]).toEqual([400, -32602, reason])
})

test('whoever takes over a DID, slug or address is refused with -32043, and it is logged', async () => {
  await start()
  const agent = await playAgent({ identity: alice })
  await join(agent.url, await carol())
  const mallory = await registered(bob)
  const sameSlug = await playAgent({ identity: bob })
  const sameDid = await playAgent({ identity: alice, name: 'other', challenge: 'no route' })
  for (const [url, reason] of [
    [sameSlug.url, 'slug'],
    [sameDid.url, 'owner'],
    [agent.url, 'owner'],
  ] as const) {
    const { status, error } = await join(url, mallory, bob)
    expect([status, error.code, error.data.reason]).toEqual([409, -32043, reason])
  }
  expect(gateway.registry.find(alice.did)).toMatchObject({ url: agent.url, owner: 'dev-client' })
  const told = logged.filter((line) => line.includes('registry.register') && line.includes('Conflict'))
  expect(told).toHaveLength(3)
  expect(told[0]).toContain(bob.did)
})

test('a changed card is kept as a difference; a changed key without a proof by the old one is refused', async () => {
  await start()
  const played: Played = { identity: alice, card: { executionCost: { amount: '0.01' } } }
  const agent = await playAgent(played)
  const bearer = await carol()
  await join(agent.url, bearer)
  played.card = { executionCost: { amount: '5' } }
  const changed = await join(agent.url, bearer)
  expect(changed.json['card_changes']).toMatchObject([
    { field: 'executionCost', before: { amount: '0.01' }, after: { amount: '5' } },
  ])
  played.document = bob.document
  expect((await join(agent.url, bearer)).error.data.reason).toBe('did_document')
})

test('a stranger joins in production: no work and no token before an operator admitted it', async () => {
  await start(production)
  const agent = await playAgent({ identity: alice })
  const bearer = await registered(alice)
  const { json } = await join(agent.url, bearer, alice)
  expect(json).toMatchObject({ verified: true, admitted: false, slug: 'stranger' })
  expect((await send('GET', '/registry/agents', '')).json).toMatchObject({ agents: [{ admitted: false }] })
  expect((await send('GET', '/agent/skills', '')).json).toEqual({ skills: [], total: 0 })
  const work = () => send('POST', '/agents/stranger/echo', 'a-token', {})
  expect(await work()).toMatchObject({
    status: 503,
    error: { code: -32042, data: { reason: 'not_admitted' } },
  })
  expect(logged.some((line) => line.includes('"Unavailable: not_admitted"'))).toBe(true)
  expect(agent.calls.some(({ authorization }) => authorization !== undefined)).toBe(false)
  for (const route of ['admit', 'quarantine', 'release']) {
    const refused = await send('POST', `/registry/agents/stranger/${route}`, bearer)
    expect([refused.status, refused.error.code]).toEqual([403, -32013])
  }
  const admin = await operator()
  expect((await send('POST', '/registry/agents/stranger/admit', admin)).json).toMatchObject({
    admitted: true,
  })
  expect(await work()).toMatchObject({ status: 200, json: { echo: true } })
  expect(agent.calls.at(-1)).toEqual({ url: '/echo', authorization: 'Bearer a-token' })
  const set = await send('POST', '/registry/agents/stranger/quarantine', admin, { reason: 'lies' })
  expect(set.json).toMatchObject({ quarantined: true, quarantine: { reason: 'lies' } })
  expect((await work()).error.data.reason).toBe('quarantined')
  expect(logged.some((line) => line.includes('"Unavailable: quarantined"'))).toBe(true)
  expect((await send('POST', '/registry/agents/stranger/release', admin)).json).toMatchObject({
    quarantine: null,
  })
  expect((await work()).status).toBe(200)
})

test('an agent that was admitted may ask about tokens, and not before', async () => {
  await start(production)
  const agent = await playAgent({ identity: alice })
  const { client_id, client_secret } = await register(alice)
  const bearer = await tokenFor(`${gateway.addresses.public}/oauth2/token`, { client_id, client_secret })
  await join(agent.url, bearer, alice)
  const admin = await operator()
  const basic = Buffer.from([client_id, client_secret].map(encodeURIComponent).join(':')).toString('base64')
  const asks = async () => {
    const response = await fetch(`${gateway.addresses.public}/oauth2/introspect`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}` },
      body: new URLSearchParams({ token: admin }),
    })
    return ((await response.json()) as { active: boolean }).active
  }
  expect(await asks()).toBe(false)
  await send('POST', '/registry/agents/stranger/admit', admin)
  expect(await asks()).toBe(true)
  await send('POST', '/registry/agents/stranger/quarantine', admin)
  expect(await asks()).toBe(false)
})

test('an operator who registers an agent admits it', async () => {
  await start(production)
  const agent = await playAgent({})
  const admin = await clientToken('oauth/operator-client.json', 'agent:admin agent:write')
  expect((await join(agent.url, admin)).json).toMatchObject({ admitted: true, verified: false })
})

test('DELETE is for the owner and the operator; another sees no such agent', async () => {
  await start()
  const agent = await playAgent({ identity: alice })
  const bearer = await registered(alice)
  await join(agent.url, bearer, alice)
  const remove = (token: string) => send('DELETE', '/registry/agents/stranger', token)
  expect((await remove('')).status).toBe(401)
  expect((await remove(await carol())).error).toMatchObject({ code: -32040 })
  expect((await remove(bearer)).status).toBe(200)
  expect(gateway.registry.all()).toEqual([])
  await join(agent.url, bearer, alice)
  expect((await remove(await operator())).status).toBe(200)
  expect((await remove(await operator())).status).toBe(404)
})

test.each<[string, string, string | undefined, number, number]>([
  ['without a token', 'POST /registry/agents', '', 401, -32009],
  ['with a token for reading', 'POST /registry/agents', 'agent:read', 403, -32013],
  ['without a token', 'DELETE /registry/agents/x', '', 401, -32009],
  ['with a token for reading', 'DELETE /registry/agents/x', 'agent:read', 403, -32013],
  ['without a token', 'POST /registry/agents/x/admit', '', 401, -32009],
  ['with a token for writing', 'POST /registry/agents/x/admit', 'agent:write', 403, -32013],
  ['with a token for writing', 'POST /registry/agents/x/quarantine', 'agent:write', 403, -32013],
  ['with a token for writing', 'POST /registry/agents/x/release', 'agent:write', 403, -32013],
])('%s %s is refused', async (_what, route, scope, status, code) => {
  await start()
  const [method = '', where = ''] = route.split(' ')
  const bearer = scope === '' ? '' : await clientToken('dev-client.json', scope)
  const answer = await send(
    method,
    where,
    bearer,
    method === 'POST' ? { url: 'http://x.example' } : undefined,
  )
  expect([answer.status, answer.error.code]).toEqual([status, code])
})

test('agents that nobody knows: 404 for the operator', async () => {
  await start()
  for (const route of ['admit', 'quarantine', 'release']) {
    expect((await send('POST', `/registry/agents/x/${route}`, await operator())).error.code).toBe(-32040)
  }
})

test('the operator sees who left, and forgets it; others do not see it', async () => {
  await start()
  const agent = await playAgent({ identity: alice })
  const bearer = await registered(alice)
  await join(agent.url, bearer, alice)
  const admin = await operator()
  await send('POST', '/registry/agents/stranger/admit', admin)
  await send('DELETE', '/registry/agents/stranger', bearer)
  const left = (token: string) => send('GET', '/registry/agents?status=left', token)
  expect([(await left('')).status, (await left(bearer)).status]).toEqual([401, 403])
  expect((await left(admin)).json).toMatchObject({
    agents: [{ slug: 'stranger', left: expect.any(String) }],
    total: 1,
  })
  expect((await send('DELETE', '/registry/agents/stranger', bearer)).status).toBe(404)
  expect((await send('POST', '/registry/agents/stranger/quarantine', admin)).status).toBe(200)
  expect((await send('DELETE', '/registry/agents/stranger', admin)).status).toBe(200)
  expect((await left(admin)).json).toMatchObject({ agents: [], total: 0 })
})

test('the client that is the DID takes the entry over from whoever posted its address', async () => {
  await start()
  const agent = await playAgent({ identity: alice })
  const stranger = await carol()
  await join(agent.url, stranger)
  const beat = (token: string) => send('PUT', '/registry/agents/stranger/heartbeat', token, {})
  expect((await beat(stranger)).status).toBe(200)
  const own = await registered(alice)
  expect((await join(agent.url, own, alice)).status).toBe(200)
  expect((await beat(stranger)).status).toBe(404)
  expect((await send('DELETE', '/registry/agents/stranger', stranger)).status).toBe(404)
  expect((await join(agent.url, stranger)).error.data.reason).toBe('owner')
  expect((await beat(own)).status).toBe(200)
})

test('the name of a folder of agents/ is no stranger’s, though its agent cannot be started', async () => {
  const agentsDir = path.join(folder, 'agents')
  await mkdir(path.join(agentsDir, 'Stranger'), { recursive: true })
  await writeFile(path.join(agentsDir, 'Stranger', 'agent.ts'), '')
  await writeFile(path.join(agentsDir, 'Stranger', 'settings.json'), '{"required":["NEVER_SET"]}')
  await start({}, {}, { agentsDir })
  const agent = await playAgent({ identity: alice })
  const { status, error } = await join(agent.url, await carol())
  expect([status, error.data.reason]).toEqual([409, 'slug'])
})
