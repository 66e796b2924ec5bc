import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { keyPairFromSeed } from '../did/keys.ts'
import { HttpClientKeys } from './client-keys.ts'
import { clientMetadataUrl } from './client-metadata-url.ts'
import { discover, isClientTemplate } from './discovery.ts'

const nothing = { issuer: undefined, introspectionUrl: undefined, clientMetadataUrl: undefined }
const key = keyPairFromSeed(Buffer.alloc(32, 1))
const did = 'did:parley:bob:agent:1'

/** An OAuth server with the given metadata; counts its requests. */
async function issuerWith(metadata: (url: string) => object | undefined) {
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(request.url ?? '')
    const isMetadata = request.url?.startsWith('/.well-known/') === true
    const body = isMetadata
      ? metadata(url)
      : { client_id: did, metadata: { public_key: key.publicKeyBase58 } }
    response.writeHead(body === undefined ? 500 : 200).end(JSON.stringify({ issuer: url, ...body }))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url,
    requests,
    keys: (onMissing: () => void = () => {}) =>
      new HttpClientKeys({
        url: clientMetadataUrl({ ...nothing, issuer: url }, onMissing) ?? '',
        clientId: 'agent',
        clientSecret: 'secret',
        cacheMs: 0,
      }),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

test.each([
  ['http://127.0.0.1:4445/admin/oauth2/introspect', 'http://127.0.0.1:4445/admin/clients/{client_id}'],
  ['https://a.example/hydra/admin/oauth2/introspect', 'https://a.example/hydra/admin/clients/{client_id}'],
  ['https://a.example/oauth2/introspect', undefined],
  ['https://a.example/admin/oauth2/introspect/more', undefined],
])('the introspection endpoint %s results in the template %s', (introspectionUrl, expected) => {
  expect(clientMetadataUrl({ ...nothing, introspectionUrl })).toBe(expected)
})

test('a configured URL takes precedence, and without an issuer there is no URL', () => {
  const configured = 'https://b.example/{client_id}'
  const introspectionUrl = 'http://127.0.0.1:4445/admin/oauth2/introspect'
  const issuer = 'https://a.example'
  expect(clientMetadataUrl({ issuer, introspectionUrl, clientMetadataUrl: configured })).toBe(configured)
  expect(clientMetadataUrl(nothing)).toBeUndefined()
})

test('the template in the issuer’s metadata is used and discovered only once', async () => {
  await using issuer = await issuerWith((url) => ({
    parley_client_metadata_uri_template: `${url}/clients/{client_id}`,
  }))
  await using keys = issuer.keys()
  const read = await Promise.all([1, 2, 3].map(() => keys.publicKey(did)))
  expect(read.map((one) => Buffer.from(one ?? []))).toEqual(read.map(() => Buffer.from(key.publicKey)))
  await keys.publicKey(did)
  const path = `/clients/${encodeURIComponent(did)}`
  expect(issuer.requests).toEqual(['/.well-known/oauth-authorization-server', path, path])
})

test('the template is derived from Hydra’s introspection endpoint if the metadata contains it', async () => {
  await using issuer = await issuerWith((url) => ({
    introspection_endpoint: `${url}/admin/oauth2/introspect`,
  }))
  await using keys = issuer.keys()
  expect(await keys.publicKey(did)).toHaveLength(32)
  expect(issuer.requests.at(-1)).toBe(`/admin/clients/${encodeURIComponent(did)}`)
})

test.each<[string, unknown]>([
  ['nothing', undefined],
  ['an address without {client_id}', 'https://a.example/clients'],
  ['a number', 7],
  ['another scheme', 'file:///{client_id}'],
  ['a template with the id as the host', 'https://{client_id}/x'],
])('no client has a key if the issuer publishes %s, which is logged and cached', async (_what, template) => {
  await using issuer = await issuerWith(() => ({ parley_client_metadata_uri_template: template }))
  let missing = 0
  await using keys = issuer.keys(() => {
    missing += 1
  })
  for (let i = 0; i < 5; i += 1) expect(await keys.publicKey(did)).toBeUndefined()
  expect([missing, issuer.requests]).toEqual([1, ['/.well-known/oauth-authorization-server']])
})

test('an issuer without metadata leads to 503, and concurrent calls share one discovery', async () => {
  await using issuer = await issuerWith(() => undefined)
  await using keys = issuer.keys()
  const lookUp = (id: string) =>
    expect(keys.publicKey(id)).rejects.toMatchObject({ error: 'Unavailable', status: 503 })
  await Promise.all([did, `${did}1`, `${did}2`].map(lookUp))
  expect(issuer.requests).toHaveLength(2)
})

test.each<[string, (response: ServerResponse) => void]>([
  ['never responds', () => {}],
  [
    'responds too slowly',
    (response) => {
      const timer = setInterval(() => response.write(' '), 20)
      response.on('close', () => clearInterval(timer))
    },
  ],
])('discovery at an issuer that %s fails within one time limit', async (_what, answer) => {
  const server = createServer((_request, response) => answer(response))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  await expect(discover(url, 200)).rejects.toThrow('no OAuth server metadata')
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
})

test.each([
  ['https://a.example/clients/{client_id}', true],
  ['http://127.0.0.1:1/?id={client_id}', true],
  ['https://{client_id}.example/', false],
  ['https://a%61%61%61{client_id}/x', false],
  ['https://user:{client_id}@a.example/', false],
  ['https://a.example/#{client_id}', false],
  ['{client_id}', false],
  ['', false],
])('whether %j is a valid template is %s', (template, expected) => {
  expect(isClientTemplate(template)).toBe(expected)
})
