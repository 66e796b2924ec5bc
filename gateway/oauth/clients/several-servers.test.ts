import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { memoryDocuments } from '@parley/kit/database/memory/documents'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { leaseRecords } from '../leases/lease-records.ts'
import {
  type Answer,
  Browser,
  encryptedStore,
  s256,
  startIdentityProvider,
  type TestIdentityProvider,
  temporaryFolder,
} from '../testing.ts'

const issuer = 'http://gateways.example/oauth2'
const redirectUri = 'http://127.0.0.1:49152/callback'
const metadata = {
  client_name: 'Example host',
  redirect_uris: [redirectUri],
  grant_types: ['authorization_code', 'refresh_token'],
}
const documentId = 'https://app.example/client.json'

let open: AsyncDisposableStack
let first: TestIdentityProvider
let second: TestIdentityProvider
let code: string
beforeEach(async () => {
  open = new AsyncDisposableStack()
  const { dir } = open.use(await temporaryFolder())
  const documents = memoryDocuments()
  const shared = { store: await encryptedStore(documents), leaseRecords: leaseRecords(documents) }
  const text = JSON.stringify({ ...metadata, client_id: documentId })
  const fetchDocument = async () => ({ status: 200, headers: {}, text })
  const options = { dir, issuer, shared, unverified: { openRegistration: true, fetchDocument } }
  first = open.use(await startIdentityProvider(options))
  second = open.use(await startIdentityProvider(options))
  code = (await readFile(path.join(dir, 'oauth/sign-in-code'), 'utf8')).trim()
})
afterEach(() => open.disposeAsync())

const register = (server: TestIdentityProvider) =>
  server.fetch('/oauth2/register', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(metadata),
  })

/** The path of a redirect, which any of the servers can serve. */
const next = ({ headers }: Answer) => {
  const { pathname, search } = new URL(headers.get('location') ?? '', issuer)
  return `${pathname}${search}`
}

test.each(['registered at the first', 'with a metadata document'])(
  'an application %s is approved at one gateway and gets its tokens at another',
  async (which) => {
    const isDocument = which === 'with a metadata document'
    const clientId = isDocument ? documentId : String((await register(first)).body['client_id'])
    const parameters = new URLSearchParams({
      client_id: clientId,
      response_type: 'code',
      redirect_uri: redirectUri,
      code_challenge: s256('v'.repeat(43)),
      code_challenge_method: 'S256',
    })
    let server = first
    const browser = new Browser({
      origin: first.origin,
      fetch: (address, init) => server.fetch(address, init),
    })
    const page = next(await browser.go(`/oauth2/authorize?${parameters.toString()}`))
    server = second
    const resume = next(await browser.go(page, { decision: 'approve', code }))
    server = first
    const back = (await browser.go(resume)).headers.get('location') ?? ''
    expect(new URL(back).searchParams.get('iss')).toBe(issuer)
    const { body } = await second.post('/oauth2/token', {
      grant_type: 'authorization_code',
      client_id: clientId,
      code: new URL(back).searchParams.get('code') ?? '',
      redirect_uri: redirectUri,
      code_verifier: 'v'.repeat(43),
    })
    expect(body).toMatchObject({ token_type: 'Bearer', scope: 'agent:read agent:write' })
    const refresh = { grant_type: 'refresh_token', client_id: clientId }
    const refreshed = await first.post('/oauth2/token', {
      ...refresh,
      refresh_token: String(body['refresh_token']),
    })
    expect(await second.provider.introspect(String(refreshed.body['access_token']))).toMatchObject({
      active: true,
      client_id: clientId,
    })
  },
)

test('all gateways share the limit of registrations', async () => {
  for (let count = 0; count < 10; count += 1) expect((await register(first)).status).toBe(201)
  expect((await register(second)).status).toBe(429)
})
