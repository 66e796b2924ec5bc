import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import type { StoredPolicy } from '@parley/wire/model/policy'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { CatalogGateway } from './testing.ts'

let gateway: CatalogGateway
const [a2a, mcp] = ['application/a2a-agent-card+json', 'application/mcp-server-card+json']
const onlyA2a = { filter: { type: a2a } }

beforeAll(async () => {
  gateway = await CatalogGateway.start()
  await gateway.add('french', 'Translates texts into French', { tags: ['language'] })
  await gateway.add('german', 'Translates texts into German', { tags: ['language'] })
  await gateway.add('painter', 'Paints pictures of animals in oil', {
    card: { executionCost: { amount: '1' } },
  })
})
afterAll(() => gateway[Symbol.asyncDispose]())

const names = ({ results, items }: { results: { identifier: string }[]; items: { identifier: string }[] }) =>
  [...results, ...items].map(({ identifier }) => identifier.replace('urn:air:agent.localhost:', ''))

test('search ranks entries by how well the skills match the text, from 0 to 100, with reasons and the source', async () => {
  const { status, headers, json } = await gateway.search('translate this letter into French', onlyA2a)
  expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
  expect(names(json)).toEqual(['agent:french', 'agent:german'])
  const [first, second] = json.results
  expect(first).toMatchObject({
    displayName: 'french',
    type: a2a,
    url: expect.stringMatching(/\/agents\/french\/\.well-known\/agent-card\.json$/),
    source: `${gateway.deployment.gateway.addresses.public}/`,
    metadata: { slug: 'french', reasons: expect.stringContaining('it mentions “French” and “translate”') },
  })
  expect(first).not.toHaveProperty('representativeQueries')
  expect(first?.['score']).toBeGreaterThan(Number(second?.['score']))
  expect(Number.isInteger(first?.['score'])).toBe(true)
})

test('a request that no agent serves has no result, and one that an agent serves in part has a low score', async () => {
  for (const text of [
    'repair the engine of my old car',
    'book a flight to Tokyo',
    'a dinner recipe with horse',
  ])
    expect((await gateway.search(text)).json.results).toEqual([])
  const scoreOf = async (text: string) => (await gateway.search(text, onlyA2a)).json.results[0]?.['score']
  expect(await scoreOf('feed my dog')).toBeLessThan(60)
  expect(await scoreOf('paint a picture of an animal in oil')).toBeGreaterThan(85)
})

test('equal requests have equal results', async () => {
  const [one, other] = [await gateway.search('translate a text'), await gateway.search('translate a text')]
  expect(other.text).toBe(one.text)
})

test('load, price and failures of an agent do not change its score', async () => {
  const before = await gateway.search('paint an animal', onlyA2a)
  gateway.registry.heartbeat(gateway.registry.bySlug('painter')?.id ?? '', { queueDepth: 500, failed: 99 })
  expect((await gateway.search('paint an animal', onlyA2a)).text).toBe(before.text)
})

test.each([
  ['one value', { type: mcp }, ['mcp:french', 'mcp:german']],
  ['alternatives', { identifier: ['urn:air:agent.localhost:mcp:german', 'x'] }, ['mcp:german']],
  ['several fields', { type: [a2a], tags: ['LANGUAGE'], 'metadata.slug': 'german' }, ['agent:german']],
  [
    'the publisher in the identifier',
    { publisher: 'agent.localhost', type: a2a, capabilities: 'french' },
    ['agent:french'],
  ],
  ['a boolean', { 'metadata.paid': 'true' }, []],
  ['a value that no entry has', { 'trustManifest.attestations.type': 'SOC2-Type2' }, []],
])('search filters by %s', async (_what, filter, expected) => {
  const { status, json } = await gateway.search('translate a text', { filter })
  expect([status, names(json).toSorted()]).toEqual([200, expected])
})

test('pages continue after the last entry, also if agents are added or removed in between', async () => {
  const first = await gateway.search('translate texts', { pageSize: 3 })
  expect(names(first.json)).toHaveLength(3)
  await gateway.add('aaa', 'Translates texts into Klingon')
  const second = await gateway.search('translate texts', { pageSize: 3, pageToken: first.json.pageToken })
  await gateway.registry.remove(gateway.registry.bySlug('aaa')?.id ?? '')
  expect(new Set([...names(first.json), ...names(second.json)]).size).toBe(3 + names(second.json).length)
  expect(names(second.json)).toContain(
    ['mcp:german', 'mcp:french'].find((one) => !names(first.json).includes(one)),
  )
})

test('a page token of another query, another list or another caller is refused', async () => {
  const { pageToken } = (await gateway.search('translate texts', { pageSize: 1 })).json
  const { pageToken: ofList } = (await gateway.send('GET', '/agents?pageSize=1')).json
  const refused = {
    status: 400,
    json: { errorCode: 'INVALID_ARGUMENT', message: expect.stringContaining('pageToken') },
  }
  expect(await gateway.search('translate words', { pageToken })).toMatchObject(refused)
  expect(await gateway.search('translate texts', { pageToken: ofList })).toMatchObject(refused)
  expect(await gateway.send('GET', `/agents?pageToken=${pageToken}`)).toMatchObject(refused)
  for (const bad of ['x', '../..', 'A'.repeat(4000), `${pageToken}A`])
    expect(await gateway.search('translate texts', { pageToken: bad })).toMatchObject(refused)
  // Callers differ while a policy applies.
  const painter = gateway.registry.bySlug('painter')?.id ?? ''
  const policy: StoredPolicy = {
    rules: [],
    default: 'deny',
    changedAt: '2026-11-22T10:00:00.000Z',
    changedBy: 'operator',
  }
  await gateway.registry.setPolicy(painter, policy, () => {})
  const carol = { authorization: `Bearer ${await gateway.deployment.carol()}` }
  const hers = await gateway.search('translate texts', { pageSize: 1 }, carol)
  expect((await gateway.search('translate texts', { pageToken: hers.json.pageToken }, carol)).status).toBe(
    200,
  )
  expect(await gateway.search('translate texts', { pageToken: hers.json.pageToken })).toMatchObject(refused)
  expect((await gateway.search('paint an animal')).json.results).toEqual([])
  await gateway.registry.setPolicy(painter, undefined, () => {})
})

test('each federation mode returns the entries of this gateway, and referrals is an empty list', async () => {
  const answers = await Promise.all(
    ['auto', 'referrals', 'none'].map((federation) => gateway.search('paint an animal', { federation })),
  )
  expect(answers.map(({ json }) => [names(json), json.referrals])).toEqual([
    [['agent:painter', 'mcp:painter'], undefined],
    [['agent:painter', 'mcp:painter'], []],
    [['agent:painter', 'mcp:painter'], undefined],
  ])
})

const query = { text: 'x' }
test.each<[string, unknown, string]>([
  ['no body', '', 'empty'],
  ['no JSON', '{', 'JSON'],
  ['no query', {}, 'query'],
  ['a query that is a text', { query: 'x' }, 'query'],
  ['an empty text', { query: { text: '  ' } }, 'query.text'],
  ['a text of 5,000 characters', { query: { text: 'x'.repeat(5000) } }, 'query.text'],
  ['an unknown field', { query, limit: 3 }, 'limit'],
  ['an unknown mode', { query, federation: 'all' }, 'federation'],
  ['a page of 101', { query, pageSize: 101 }, 'pageSize'],
  ['a page of 0', { query, pageSize: 0 }, 'pageSize'],
  ['a filter by an unknown field', { query: { ...query, filter: { 'okf:taxonomy': 'x' } } }, 'okf:taxonomy'],
  [
    'a filter by a prototype',
    { query: { ...query, filter: { 'constructor.name': 'Object' } } },
    'constructor',
  ],
  [
    '21 filters',
    {
      query: {
        ...query,
        filter: Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`metadata.${at}`, 'x'])),
      },
    },
    'filter',
  ],
  ['a hostile key', '{"query":{"text":"x","__proto__":{}}}', '__proto__'],
])('search with %s is refused with INVALID_ARGUMENT and the field', async (_what, body, named) => {
  const { status, json } = await gateway.send('POST', '/search', body)
  expect([status, json.errorCode]).toEqual([400, 'INVALID_ARGUMENT'])
  expect(json.message).toContain(named)
})

test('a body of more than 64 KiB and one that is not JSON are refused', async () => {
  const long = { query: { text: 'x' }, pageToken: 'x'.repeat(70_000) }
  expect(await gateway.send('POST', '/search', long)).toMatchObject({
    status: 413,
    json: { errorCode: 'INVALID_ARGUMENT' },
  })
  const typed = await gateway.send('POST', '/search', 'text=x', { 'content-type': 'text/plain' })
  expect([typed.status, typed.json.errorCode]).toEqual([415, 'INVALID_ARGUMENT'])
})

test.each(['\u0000', '\ud800', '\u202etxet', '🦜🦜', "'; DROP TABLE agents; --", `${'\n'.repeat(99)}x`, '*'])(
  'search accepts the text %j',
  async (text) => {
    expect((await gateway.search(text)).status).toBe(200)
  },
)

test('explore counts the values of fields in all entries or in the entries that match', async () => {
  const facets = [
    { field: 'type' },
    { field: 'tags', limit: 1, minCount: 2 },
    { field: 'publisher' },
    { field: 'metadata.paid' },
  ]
  const { json } = await gateway.send('POST', '/explore', { resultType: { facets } })
  expect(json.facets).toEqual({
    type: {
      buckets: [
        { value: a2a, count: 4 },
        { value: mcp, count: 4 },
        { value: 'application/ai-registry+json', count: 1 },
      ],
      otherCount: 0,
    },
    tags: { buckets: [{ value: 'language', count: 4 }], otherCount: 2 },
    publisher: { buckets: [{ value: 'agent.localhost', count: 9 }], otherCount: 0 },
    'metadata.paid': {
      buckets: [
        { value: 'false', count: 4 },
        { value: 'true', count: 2 },
      ],
      otherCount: 0,
    },
  })
  const matching = {
    query: { text: 'translate this letter', filter: { type: a2a } },
    resultType: { facets: [{ field: 'metadata.slug' }] },
  }
  expect((await gateway.send('POST', '/explore', matching)).json.facets).toEqual({
    'metadata.slug': {
      buckets: [
        { value: 'french', count: 1 },
        { value: 'german', count: 1 },
      ],
      otherCount: 0,
    },
  })
})

test.each<[string, object, string]>([
  ['no facets', { resultType: { facets: [] } }, 'facets'],
  ['another shape', { resultType: { counts: [] } }, 'resultType'],
  ['a field that is not counted', { resultType: { facets: [{ field: 'data' }] } }, 'data'],
  ['a limit of 0', { resultType: { facets: [{ field: 'type', limit: 0 }] } }, 'limit'],
])('explore with %s is refused with INVALID_ARGUMENT', async (_what, body, named) => {
  const { status, json } = await gateway.send('POST', '/explore', body)
  expect([status, json.errorCode]).toEqual([400, 'INVALID_ARGUMENT'])
  expect(json.message).toContain(named)
})

test('the list has all entries in pages, ordered by identifier', async () => {
  const all = await gateway.send('GET', '/agents')
  expect(names(all.json)).toEqual(names(all.json).toSorted())
  expect([all.json.total, all.json.pageToken]).toEqual([9, undefined])
  const listed: string[] = []
  let pageToken: string | undefined = ''
  while (pageToken !== undefined) {
    const page = await gateway.send('GET', `/agents?pageSize=4${pageToken && `&pageToken=${pageToken}`}`)
    listed.push(...names(page.json))
    expect(page.json.total).toBe(9)
    ;({ pageToken } = page.json)
  }
  expect(listed).toEqual(names(all.json))
})

test('the list is filtered and ordered by its expressions', async () => {
  const list = async (params: Record<string, string>) =>
    names((await gateway.send('GET', `/agents?${new URLSearchParams(params).toString()}`)).json)
  expect(
    await list({ filter: `type = '${a2a}' AND createdAfter > '2026-01-01'`, orderBy: 'displayName DESC' }),
  ).toEqual(['agent:painter', 'agent:german', 'agent:french'])
  expect(await list({ filter: 'displayName = "FREN,pain"', orderBy: 'type DESC, name' })).toEqual([
    'mcp:french',
    'mcp:painter',
    'agent:french',
    'agent:painter',
  ])
  expect(await list({ filter: 'publisherId=example.com' })).toEqual([])
  expect(await list({ filter: "updatedAfter > '2999-01-01'" })).toEqual([])
})

test('a path below /agents still names an agent', async () => {
  expect((await gateway.send('GET', '/agents/french/.well-known/agent-card.json')).text).toContain(
    '"name":"french"',
  )
  const wrong = await gateway.send('POST', '/agents', {})
  expect([wrong.status, wrong.headers.get('allow')]).toEqual([405, 'GET, HEAD'])
})

/** A checkout of ards-project/ard-spec. */
const checkout = process.env['ARD_SPEC']

test.each(checkout === undefined ? [] : [checkout])(
  'the conformance script of ARD finds no errors and gives no warnings, in %s (needs Python)',
  async (folder) => {
    const { local } = gateway.deployment.gateway.addresses
    const runs = [
      ['manifest', `${local}/.well-known/ard.json`],
      ['manifest', `${local}/.well-known/ai-catalog.json`],
      ['registry', local],
    ].map((args) =>
      promisify(execFile)('python3', [path.join(folder, 'conformance/bin/conformance-test'), ...args]),
    )
    for (const { stdout } of await Promise.all(runs)) {
      expect(stdout).toContain('CONFORMANCE STATUS: PASS')
      expect(stdout.replaceAll(/.*jsonschema.*\n/g, '')).not.toContain('⚠')
    }
  },
)
