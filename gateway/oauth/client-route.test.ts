import { HttpClientKeys } from '@parley/kit/auth/client-keys'
import { makeDid } from '@parley/kit/did/did'
import { keyPairFromSeed } from '@parley/kit/did/keys'
import { agentConfig } from '@parley/kit/process/config'
import bs58 from 'bs58'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  basic,
  type Credentials,
  startIdentityProvider,
  type TestIdentityProvider,
  temporaryFolder,
} from './testing.ts'

const key = keyPairFromSeed(Buffer.alloc(32, 1))
const did = makeDid({ author: 'a'.repeat(100), name: 'agent', publicKey: key.publicKey })

let folder: Awaited<ReturnType<typeof temporaryFolder>>
let server: TestIdentityProvider
let checker: Credentials
beforeAll(async () => {
  folder = await temporaryFolder()
  server = await startIdentityProvider({ dir: folder.dir })
  const scope = 'agent:read agent:write'
  checker = await server.provider.ensureClient({
    clientId: 'did:x:y',
    clientName: 'c',
    scope,
    introspection: true,
  })
  await server.provider.ensureClient({
    clientId: did,
    clientName: 'a',
    scope,
    publicKey: key.publicKeyBase58,
  })
})
afterAll(async () => {
  await server[Symbol.asyncDispose]()
  await folder[Symbol.asyncDispose]()
})

const ask = (clientId: string, headers: Record<string, string> = { authorization: basic(checker) }) =>
  server.fetch(`/oauth2/clients/${encodeURIComponent(clientId)}`, { headers })

test('a server that may introspect can read only the key of a client', async () => {
  const answer = await ask(did)
  expect(answer.status).toBe(200)
  expect(answer.body).toEqual({ client_id: did, metadata: { public_key: key.publicKeyBase58 } })
  expect(answer.headers.get('cache-control')).toBe('no-store')
})

test('agents read a client’s key from the configured URL', async () => {
  const url = `${server.origin}/oauth2/clients/{client_id}`
  const { config } = agentConfig({ OAUTH_CLIENT_METADATA_URL: url })
  await using keys = new HttpClientKeys({ url: config.oauth.clientMetadataUrl ?? '', ...checker })
  expect(Buffer.from((await keys.publicKey(did)) ?? [])).toEqual(Buffer.from(key.publicKey))
  expect(await keys.publicKey('did:x:y')).toBeUndefined()
  expect(await keys.publicKey('did:nobody')).toBeUndefined()
})

test.each(['nobody', '', '..', 'a/b', 'did:x:%', 'x'.repeat(5000)])(
  'a request for the unknown client %j returns 404',
  async (clientId) => {
    const answer = await ask(clientId)
    expect([answer.status, answer.body['error']]).toEqual([404, expect.any(String)])
  },
)

test('requests without the credentials of a client that may introspect are refused', async () => {
  const other = await server.provider.ensureClient({
    clientId: 'other',
    clientName: 'o',
    scope: 'agent:read',
  })
  const token = await server.token(other)
  const wrong = { ...checker, clientSecret: 'wrong' }
  for (const authorization of [undefined, basic(other), basic(wrong), `Bearer ${token}`]) {
    const answer = await ask(did, authorization === undefined ? {} : { authorization })
    expect([answer.status, answer.body]).toEqual([401, { error: 'invalid_client' }])
    expect(answer.headers.get('www-authenticate')).toMatch(/^Basic /)
  }
})

test.each([
  ['of small order', `01${'00'.repeat(31)}`],
  ['not canonical', `ee${'ff'.repeat(30)}7f`],
])('a key %s cannot be registered', async (_what, hex) => {
  const public_key = bs58.encode(Buffer.from(hex, 'hex'))
  const answer = await server.register({
    client_name: 'x',
    scope: 'agent:read',
    public_key,
    grant_types: ['client_credentials'],
  })
  expect([answer.status, answer.body['error']]).toEqual([400, 'invalid_client_metadata'])
})
