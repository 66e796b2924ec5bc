import type { JsonObject } from '@parley/wire/model/task'
import { expect, test } from 'vitest'
import { DidDocuments } from './did-documents.ts'
import { didWebUrl } from './did-web.ts'

const own = 'did:parley:me:gateway:11111111-2222-4333-8444-555555555555'

function documents(external: Record<string, JsonObject | 'silence'> = {}, options = {}) {
  const requested: string[] = []
  const didDocuments = new DidDocuments({
    own: (did) => (did === own ? { id: own } : undefined),
    readExternal: async (url) => {
      requested.push(url)
      const found = external[url]
      if (found === 'silence') await new Promise((resolve) => setTimeout(resolve, 20))
      if (typeof found !== 'object') throw new Error('nothing there')
      return found
    },
    ...options,
  })
  return { resolve: (did: string) => didDocuments.resolve(did), requested }
}

test.each([
  ['example.com', 'https://example.com/.well-known/did.json'],
  ['example.com%3A8443', 'https://example.com:8443/.well-known/did.json'],
  ['example.com:user:alice', 'https://example.com/user/alice/did.json'],
  ['example.com%3a8443:a.b', 'https://example.com:8443/a.b/did.json'],
  // The guard refuses this address later.
  ['127.0.0.1', 'https://127.0.0.1/.well-known/did.json'],
  ['example.com%2Fetc', undefined],
  ['example.com%40evil.example', undefined],
  ['user%40example.com', undefined],
  ['example.com:..:secret', undefined],
  ['example.com:%2e%2e:x', undefined],
  ['example.com::x', undefined],
  ['example.com:a%2Fb', undefined],
  ['example.com%3A', undefined],
  ['example.com%3A80%3A80', undefined],
  ['-example.com', undefined],
  ['[::1]', undefined],
])('the document of did:web:%s is located at %s', (id, url) => {
  expect(didWebUrl(id)).toBe(url)
})

test('the resolver answers for its own documents without an external look-up', async () => {
  const { resolve, requested } = documents()
  expect(await resolve(own)).toEqual({ id: own })
  expect(requested).toEqual([])
})

test('the document of a did:key is derived from the DID', async () => {
  const did = 'did:key:z6MktvqCyLxTsXUH1tUZncNdVeEZ7hNh7npPRbUU27GTrYb8'
  expect(await documents().resolve(did)).toMatchObject({
    id: did,
    verificationMethod: [
      { controller: did, publicKeyBase58: 'FUaAP6i2XyyouPds73QneYgZJ86qhua2jaZYBqJSwKok' },
    ],
  })
})

test('concurrent requests for a did:web read its URL once and the document is cached', async () => {
  const document = { id: 'did:web:example.com' }
  const { resolve, requested } = documents({ 'https://example.com/.well-known/did.json': document })
  const all = await Promise.all([1, 2, 3].map(() => resolve('did:web:example.com')))
  expect(all).toEqual([document, document, document])
  expect(await resolve('did:web:example.com')).toEqual(document)
  expect(requested).toEqual(['https://example.com/.well-known/did.json'])
})

test('cached documents expire', async () => {
  const document = { id: 'did:web:example.com' }
  const external = { 'https://example.com/.well-known/did.json': document }
  const { resolve, requested } = documents(external, { keptMs: 0, missingKeptMs: 0 })
  await resolve('did:web:example.com')
  await resolve('did:web:example.com')
  await resolve('did:web:away.example')
  await resolve('did:web:away.example')
  expect(requested).toHaveLength(4)
})

test.each<[string, string, JsonObject | undefined]>([
  ['that is not found', 'did:web:example.com', undefined],
  ['whose document has another id', 'did:web:example.com', { id: 'did:web:evil.example' }],
  [
    'whose document is too large',
    'did:web:example.com',
    { id: 'did:web:example.com', x: 'x'.repeat(70_000) },
  ],
  ['of an unknown agent', 'did:parley:bob:agent:1', undefined],
  ['of an unsupported method', 'did:ion:abc', undefined],
])('a DID %s is not found', async (_what, did, document) => {
  const external = document && { 'https://example.com/.well-known/did.json': document }
  expect(await documents(external).resolve(did)).toBeUndefined()
})

test.each([
  '',
  'did',
  'did:',
  'did:web',
  'did:web:',
  'did:WEB:example.com',
  'did:key:notbase58!',
  'did:key:z6Mk',
  'did:key:',
  'did:web:a b',
  'did:web:example.com#key-1',
  'did:web:example.com?a=b',
  'did:web:example.com/path',
  'did:web:%2e%2e',
  ' did:web:example.com',
  'did:web:<script>',
  'did:web:example.com\n',
  `did:web:${'a'.repeat(10_000)}`,
  `did:web:${':'.repeat(500)}`,
])('%j is rejected as malformed', async (did) => {
  await expect(documents().resolve(did)).rejects.toMatchObject({ code: -32602, status: 400 })
})

test('the number of concurrent external look-ups is limited', async () => {
  const external = { 'https://a.example/.well-known/did.json': 'silence' as const }
  const { resolve } = documents(external, { concurrentMax: 1 })
  const first = resolve('did:web:a.example')
  await expect(resolve('did:web:b.example')).rejects.toMatchObject({ code: -32042 })
  // DIDs that need no external look-up are still resolved.
  const did = 'did:key:z6MkpTHR8VNsBxYAAWHut2Geadd9jSwuBV8xRoAnwWsdvktH'
  expect(await resolve(did)).toMatchObject({ id: did })
  await first
})
