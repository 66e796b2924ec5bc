import { readFile } from 'node:fs/promises'
import type { IncomingMessage, ServerResponse } from 'node:http'
import https from 'node:https'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { text as textOf } from 'node:stream/consumers'
import { keyId } from '@parley/kit/did/did'
import { type KeyPair, keyPairFromSeed } from '@parley/kit/did/keys'
import { signRequest } from '@parley/kit/did/signature'
import { selfSigned } from '@parley/tools/testing/certificate'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { RegistrationGateway } from './testing.ts'

let deployment: RegistrationGateway
const servers: https.Server[] = []

beforeEach(async () => {
  deployment = await RegistrationGateway.open()
})
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections()
    server.close()
  }
  await deployment[Symbol.asyncDispose]()
})

const key = keyPairFromSeed(Buffer.alloc(32, 41))
const other = keyPairFromSeed(Buffer.alloc(32, 42))
const { cert, key: tlsKey } = selfSigned(['127.0.0.1'])

/** Starts a web server with a did:web document that the test can change, and returns the DID. */
async function webDid(document: (did: string) => unknown): Promise<string> {
  let did = ''
  const server = https.createServer({ cert, key: tlsKey }, (_request, response) => {
    const found = document(did)
    if (found === undefined) response.writeHead(404).end()
    else response.setHeader('content-type', 'application/json').end(JSON.stringify(found))
  })
  servers.push(server)
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  did = `did:web:127.0.0.1%3A${(server.address() as AddressInfo).port}`
  return did
}

const documentOf = (did: string, ...keys: KeyPair[]) => ({
  id: did,
  verificationMethod: keys.map((one, at) => ({
    id: `#key-${at}`,
    type: 'Ed25519VerificationKey2020',
    controller: did,
    publicKeyBase58: one.publicKeyBase58,
  })),
  authentication: keys.map((_, at) => `#key-${at}`),
})

interface Asked {
  did: string
  key?: KeyPair
  metadata?: object
}

/** Registers an OAuth client (RFC 7591) with a request signed with the key. */
async function register({ did, key: signer = key, metadata = {} }: Asked) {
  const initial = await readFile(
    path.join(deployment.folder, 'data', 'oauth', 'initial-access-token'),
    'utf8',
  )
  const { public: origin } = deployment.gateway.addresses
  const body = JSON.stringify({
    issuer: `${origin}/oauth2`,
    client_id: did,
    client_name: 'someone',
    grant_types: ['client_credentials'],
    token_endpoint_auth_method: 'client_secret_post',
    public_key: signer.publicKeyBase58,
    ...metadata,
  })
  const answer = await fetch(`${origin}/oauth2/register`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${initial.trim()}`,
      'content-type': 'application/json',
      ...signRequest({ did, key: signer, body }),
    },
    body,
  })
  return { status: answer.status, body: (await answer.json()) as Record<string, string> }
}

async function form(route: string, fields: Record<string, string | undefined>) {
  const body = new URLSearchParams(fields as Record<string, string>)
  const answer = await fetch(`${deployment.gateway.addresses.public}${route}`, { method: 'POST', body })
  return { status: answer.status, body: (await answer.json()) as Record<string, string> }
}

const didBindu = (one: KeyPair) => `did:bindu:ann_at_example_com:gateway:${keyId(one.publicKey)}`

test('a client can use a did:bindu derived from its key as its id and sign requests with that key', async () => {
  await deployment.start()
  const did = didBindu(key)
  const { status, body } = await register({ did })
  expect([status, body['client_id']]).toEqual([201, did])
  const { client_id, client_secret } = body
  const token = await form('/oauth2/token', { grant_type: 'client_credentials', client_id, client_secret })
  const bearer = token.body['access_token'] ?? ''
  const call = { jsonrpc: '2.0', id: 'one', method: 'tasks/list', params: {} }
  const listed = await deployment.send('POST', '/', bearer, call, { did, key } as never)
  expect(listed).toMatchObject({ status: 200, json: { result: [] } })
  const forged = await deployment.send('POST', '/', bearer, call, { did, key: other } as never)
  expect([forged.status, forged.error.data.reason]).toEqual([403, 'crypto_mismatch'])
})

test.each([
  ['whose id derives from another key', didBindu(other)],
  ['whose id is derived from something else', 'did:bindu:ann:gateway:00d43e45-959b-fb88-2bab-3d30a371d743'],
  ['with only the id', `did:bindu:${keyId(key.publicKey)}`],
  ['with the id in another position', `did:bindu:${keyId(key.publicKey)}:ann:gateway`],
])('a did:bindu %s is refused as a client id', async (_what, did) => {
  await deployment.start()
  const { status, body } = await register({ did })
  expect([status, body['error']]).toEqual([400, 'invalid_client_metadata'])
})

test('a client can use a did:web as its id if the document lists the key that signed the registration', async () => {
  await deployment.start({}, { ca: cert })
  const did = await webDid((own) => documentOf(own, other, key))
  const { status, body } = await register({ did })
  expect([status, body['client_id'], body['public_key']]).toEqual([201, did, key.publicKeyBase58])
})

test.each<[string, (did: string) => unknown]>([
  ['lists another key', (did) => documentOf(did, other)],
  ['is about another DID', () => documentOf('did:web:example.com', key)],
  ['lists no key', (did) => documentOf(did)],
  ['is missing', () => undefined],
])('a did:web whose document %s is refused as a client id', async (_what, document) => {
  await deployment.start({}, { ca: cert })
  const { status, body } = await register({ did: await webDid(document) })
  expect([status, body['error']]).toEqual([400, 'invalid_client_metadata'])
  expect(body['error_description']).toContain('did:web')
})

test('a did:web at a private address is refused without being resolved', async () => {
  await deployment.start({ REGISTRY_ALLOWED_HOSTS: '192.0.2.1' }, { ca: cert })
  let reads = 0
  const did = await webDid((own) => {
    reads += 1
    return documentOf(own, key)
  })
  expect((await register({ did })).status).toBe(400)
  expect(reads).toBe(0)
})

test('a did:web is resolved only for clients with an initial access token', async () => {
  await deployment.start({}, { ca: cert })
  let reads = 0
  const did = await webDid((own) => {
    reads += 1
    return documentOf(own, key)
  })
  const answer = await fetch(`${deployment.gateway.addresses.public}/oauth2/register`, {
    method: 'POST',
    headers: { authorization: 'Bearer wrong', 'content-type': 'application/json' },
    body: JSON.stringify({ client_id: did, public_key: key.publicKeyBase58 }),
  })
  expect([answer.status, reads]).toEqual([401, 0])
})

test('the key of a did:web client cannot be changed without a new registration', async () => {
  await deployment.start({}, { ca: cert })
  const did = await webDid((own) => documentOf(own, key, other))
  const { body: registered } = await register({ did })
  const { registration_client_uri, registration_access_token, ...rest } = registered
  const { client_secret_expires_at: _1, client_id_issued_at: _2, ...metadata } = rest
  const put = async (change: Record<string, string>, signer: KeyPair) => {
    const issuer = `${deployment.gateway.addresses.public}/oauth2`
    const body = JSON.stringify({ ...metadata, issuer, ...change })
    const answer = await fetch(registration_client_uri ?? '', {
      method: 'PUT',
      headers: {
        authorization: `Bearer ${registration_access_token}`,
        'content-type': 'application/json',
        ...signRequest({ did, key: signer, body }),
      },
      body,
    })
    return answer.status
  }
  expect(await put({ client_name: 'renamed' }, key)).toBe(200)
  expect(await put({ public_key: other.publicKeyBase58 }, other)).toBe(400)
})

test.each(['did:example:1', 'did:ion:abc', 'did:parley:ann:agent:1'])(
  '%s is refused as a client id',
  async (did) => {
    await deployment.start()
    const { status, body } = await register({ did })
    expect([status, body['error']]).toEqual([400, 'invalid_client_metadata'])
  },
)

test('the scopes openid and offline are accepted without effect, and introspection returns sub', async () => {
  await deployment.start()
  const did = didBindu(key)
  const scope = 'openid offline agent:read agent:write'
  const { status, body } = await register({ did, metadata: { scope } })
  expect(status).toBe(201)
  const { client_id, client_secret } = body
  const grant = { grant_type: 'client_credentials', client_id, client_secret }
  for (const asked of [
    { ...grant, scope },
    grant,
    { ...grant, scope, resource: deployment.gateway.addresses.public },
  ]) {
    const token = await form('/oauth2/token', asked)
    expect([token.status, token.body['scope']]).toEqual([200, 'agent:read agent:write'])
    const access = { token: token.body['access_token'], client_id, client_secret }
    expect((await form('/oauth2/introspect', access)).body).toMatchObject({
      active: true,
      client_id: did,
      sub: did,
      scope: 'agent:read agent:write',
    })
  }
  const nothing = await form('/oauth2/token', { ...grant, scope: 'openid offline' })
  expect([nothing.status, nothing.body['error']]).toEqual([400, 'invalid_scope'])
})

test('a signed request is forwarded unchanged to an external agent', async () => {
  await deployment.start()
  const bodies: string[] = []
  const poet = async (request: IncomingMessage, response: ServerResponse) => {
    const shown: Record<string, unknown> = {
      '/.well-known/agent.json': { name: 'poet', description: 'Writes poems' },
      '/agent/skills': { skills: [{ id: 'poem', name: 'Write poems', description: 'Writes poems' }] },
    }
    const task = { id: crypto.randomUUID(), kind: 'task', status: { state: 'submitted' } }
    const json = shown[request.url ?? ''] ?? { jsonrpc: '2.0', id: 'one', result: task }
    const body = await textOf(request)
    if (request.method === 'POST') bodies.push(body)
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(json))
  }
  const agent = await deployment.serveAgent({ before: (request, response) => void poet(request, response) })
  await deployment.join(
    agent.url,
    await deployment.clientToken('oauth/operator-client.json', 'agent:admin agent:write'),
  )
  const did = didBindu(key)
  const { client_id, client_secret } = (await register({ did })).body
  const resource = `${deployment.gateway.addresses.public}/agents/poet`
  const grant = { grant_type: 'client_credentials', client_id, client_secret }
  const message = {
    role: 'user',
    kind: 'message',
    messageId: crypto.randomUUID(),
    parts: [{ kind: 'text', text: 'Write poems' }],
  }
  const call = { jsonrpc: '2.0', id: 'one', method: 'message/send', params: { message } }
  const tokens = [await form('/oauth2/token', grant), await form('/oauth2/token', { ...grant, resource })]
  const answers = []
  for (const { body } of tokens)
    answers.push(await deployment.send('POST', '/', body['access_token'] ?? '', call, { did, key } as never))
  expect(answers.map(({ status }) => status)).toContain(200)
  expect(new Set(bodies)).toEqual(new Set([JSON.stringify(call)]))
})
