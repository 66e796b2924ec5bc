import { makeLog } from '@parley/kit/process/log'
import { type ScriptedAnswer, scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { expect, test } from 'vitest'
import { CatalogSources } from './catalog-sources.ts'
import { readManifest } from './read-manifest.ts'
import { CatalogGateway } from './testing.ts'

const json = (body: object): ScriptedAnswer => ({
  status: 200,
  type: 'application/json',
  body: JSON.stringify(body),
})
const acme = new URL('https://acme.com/.well-known/ard.json')
const entry = {
  identifier: 'urn:air:acme.com:server:tax',
  displayName: 'Tax office',
  type: 'application/mcp-server-card+json',
  url: 'https://acme.com/mcp/tax',
  description: 'Calculates the income tax of a person',
  tags: ['tax'],
  representativeQueries: ['how much income tax do I pay', 'what can I deduct'],
  trustManifest: {
    identity: 'did:web:acme.com',
    attestations: [{ type: 'SOC2-Type2', uri: 'https://acme.com' }],
  },
}
const identifiers = (list: { entry: { identifier: string } }[]) => list.map((one) => one.entry.identifier)

test('an entry of another publisher is found by search, list and explore with its own address', async () => {
  const local = { ...entry, identifier: 'urn:air:agent.localhost:server:tax' }
  const registry = {
    identifier: 'urn:air:agent.localhost:registry:all',
    displayName: 'All',
    type: 'application/ai-registry+json',
    url: 'https://all.example/',
  }
  await using site = await scriptedAgent({
    'GET /.well-known/ard.json': () => json({ entries: [local, registry] }),
  })
  await using gateway = await CatalogGateway.start({ CATALOG_SOURCES: site.url })
  await gateway.add('taxi', 'Orders a taxi to an address')
  await expect.poll(async () => (await gateway.send('GET', '/agents')).json.total).toBe(7)
  const { results, referrals } = (
    await gateway.search('calculate my income tax', { federation: 'referrals' })
  ).json
  expect(results).toMatchObject([
    {
      identifier: local.identifier,
      url: 'https://acme.com/mcp/tax',
      publisher: { identifier: 'agent.localhost' },
      metadata: { catalog: `${site.url}/.well-known/ard.json`, reasons: expect.stringContaining('tax') },
      source: `${gateway.deployment.gateway.addresses.public}/`,
    },
  ])
  expect(results[0]).not.toHaveProperty('trustManifest')
  expect(results[0]?.['score']).toBeGreaterThan(40)
  expect(referrals).toEqual([registry])
  expect((await gateway.send('GET', '/.well-known/ard.json')).text).not.toContain(local.identifier)
  const facets = { query: { text: 'income tax' }, resultType: { facets: [{ field: 'metadata.catalog' }] } }
  expect(
    (await gateway.send('POST', '/explore', facets)).json.facets?.['metadata.catalog']?.buckets,
  ).toHaveLength(1)
})

/** Reads these documents, by path below https://acme.com, as a gateway does. */
async function read(documents: Record<string, object>, sources = ['https://acme.com']) {
  const requested: string[] = []
  const client = {
    get: async (url: string) => {
      requested.push(url)
      const found = documents[url.replace('https://acme.com', '')]
      return { status: found === undefined ? 404 : 200, json: found && JSON.parse(JSON.stringify(found)) }
    },
  }
  using catalogs = new CatalogSources({ sources, client, log: makeLog({ name: 'test', level: 'silent' }) })
  await catalogs.settled
  return { catalogs, requested, found: identifiers(catalogs.all()) }
}

test('a server without ard.json is read at the path of AI Catalog', async () => {
  const { requested, found } = await read({ '/.well-known/ai-catalog.json': { entries: [entry] } })
  expect(requested).toEqual([
    'https://acme.com/.well-known/ard.json',
    'https://acme.com/.well-known/ai-catalog.json',
  ])
  expect(found).toEqual([entry.identifier])
})

test('nested catalogs are read once each and to a depth of 4', async () => {
  const nested = (name: string) => ({
    identifier: `urn:air:acme.com:catalog:${name}`,
    type: 'application/ai-catalog+json',
    url: `https://acme.com/${name}`,
  })
  const level = (at: number) => ({
    entries: [{ ...entry, identifier: `urn:air:acme.com:level:${at}` }, nested('1'), nested(String(at + 1))],
  })
  const documents = Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`/${at}`, level(at)]))
  const { requested, found } = await read({ ...documents, '/.well-known/ard.json': level(0) })
  expect(found).toEqual([0, 1, 2, 3, 4].map((at) => `urn:air:acme.com:level:${at}`))
  expect(new Set(requested).size).toBe(requested.length)
  const { type, identifier } = nested('inside')
  const embedded = { identifier, type, data: { entries: [entry] } }
  expect((await read({ '/.well-known/ard.json': { entries: [embedded] } })).found).toEqual([entry.identifier])
})

test.each<[string, object]>([
  ['that claims another domain', { identifier: 'urn:air:google.com:server:tax' }],
  ['that claims a domain above the host', { identifier: 'urn:air:com:server:tax' }],
  ['that claims the placeholder of local gateways', { identifier: 'urn:air:agent.localhost:server:tax' }],
  ['without an urn', { identifier: 'tax' }],
  ['without a type', { type: undefined }],
  ['with url and data', { data: {} }],
  ['with neither', { url: undefined }],
  ['with the address of a file', { url: 'file:///etc/passwd' }],
  ['with a password in the address', { url: 'https://a:b@acme.com' }],
  ['with data of 20,000 characters', { url: undefined, data: { x: 'x'.repeat(20_000) } }],
])('an entry %s is refused, and the others are kept', (_what, change) => {
  const manifest = readManifest({ entries: [{ ...entry, ...change }, null, entry] }, acme)
  expect([manifest?.entries.length, manifest?.refused]).toEqual([1, 2])
})

test('texts of other publishers are limited and lose hidden characters', () => {
  const hostile = {
    ...entry,
    displayName: 'Tax\u001b[2J',
    description: 'x'.repeat(9000),
    tags: Array(500)
      .fill(0)
      .map((_, at) => `t${at}`),
    representativeQueries: [1],
    updatedAt: 'now',
  }
  const [read_] = readManifest({ entries: [hostile] }, acme)?.entries ?? []
  expect(read_).toMatchObject({ displayName: 'Tax', representativeQueries: undefined, updatedAt: undefined })
  expect([read_?.description?.length, read_?.tags?.length]).toEqual([1000, 20])
})

test('a subdomain of the host may publish', () => {
  const below = { ...entry, identifier: 'urn:air:tax.acme.com:server:tax' }
  expect(readManifest({ entries: [below] }, acme)).toMatchObject({
    refused: 0,
    entries: [{ identifier: below.identifier }],
  })
})

test('entries that a source drops are gone, and those of a source that fails remain', async () => {
  let entries: object[] | undefined = [entry, { ...entry, identifier: 'urn:air:acme.com:server:other' }]
  const client = {
    get: async () => ({ status: 200, json: entries && JSON.parse(JSON.stringify({ entries })) }),
  }
  const log = makeLog({ name: 'test', level: 'silent' })
  using catalogs = new CatalogSources({ sources: ['https://acme.com/a'], client, log, refreshMs: 1 })
  await catalogs.settled
  expect(catalogs.find('income tax')).toHaveLength(2)
  entries = [entry]
  await expect.poll(() => catalogs.find('income tax').length).toBe(1)
  entries = undefined
  const before = catalogs.settled
  await expect.poll(() => catalogs.settled === before).toBe(false)
  await catalogs.settled
  expect(identifiers(catalogs.all())).toEqual([entry.identifier])
  expect(identifiers(catalogs.find('income tax').map(({ listed }) => listed))).toEqual([entry.identifier])
})

test('two sources with the same entry have it once', async () => {
  const other = { ...entry, identifier: 'urn:air:acme.com:server:other' }
  const documents = { '/a': { entries: [entry] }, '/b': { entries: [entry, other] } }
  const { catalogs, found } = await read(documents, ['https://acme.com/a', 'https://acme.com/b'])
  expect(found.toSorted()).toEqual([other.identifier, entry.identifier])
  expect(catalogs.find('repair my bicycle')).toEqual([])
})
