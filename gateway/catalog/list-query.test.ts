import { expect, test } from 'vitest'
import type { ListedEntry } from './catalog-entry.ts'
import { listFilter, listOrder } from './list-query.ts'

function listed(displayName: string, updatedAt = '2026-05-01T00:00:00Z'): ListedEntry {
  const entry = {
    identifier: `urn:air:acme.com:agent:${displayName}`,
    displayName,
    type: 'application/a2a-agent-card+json',
    url: 'https://acme.com',
    updatedAt,
    publisher: { identifier: 'acme.com', displayName: 'Acme', identityType: 'dns' },
  } as const
  return { entry, complete: async () => entry }
}

test.each([
  ["displayName = 'AUTHOR'", ['author']],
  ['displayName=\'auth,oth\' and publisherId = "acme.com, x.org"', ['author', 'other']],
  ['updatedAfter > 2026-06-01', ['other']],
  ["type = 'application/mcp-server-card+json'", []],
  ["displayName = ''", []],
])('the filter %s selects %s', (filter, expected) => {
  const all = [listed('author'), listed('other', '2026-07-01T00:00:00Z')]
  expect(all.filter(listFilter(filter)).map(({ entry }) => entry.displayName)).toEqual(expected)
})

test.each([
  '',
  'AND',
  "type = 'a' AND",
  "type = 'a' OR type = 'b'",
  "type = 'a' type = 'b'",
  "type LIKE 'a'",
  "type = 'a",
  "__proto__ = 'a'",
  "constructor = 'a'",
  "createdAfter > 'yesterday'",
  `type = ${"'".repeat(1500)}`,
  'a'.repeat(2000),
  `type${' '.repeat(1900)}x`,
])('the filter %j is refused', (filter) => {
  expect(() => listFilter(filter)).toThrow(expect.objectContaining({ error: 'InvalidParams' }))
})

test('an order compares field by field, and the identifier last', () => {
  const { keyOf, compare } = listOrder('updatedAt DESC, displayName')
  const entries = [listed('b'), listed('a'), listed('c', '2026-09-01T00:00:00Z')]
  const sorted = entries.map(keyOf).toSorted(compare)
  expect(sorted.map((key) => key[1])).toEqual(['c', 'a', 'b'])
  expect(compare(keyOf(listed('a')), keyOf(listed('a')))).toBe(0)
})

test.each(['score', 'displayName UP', 'displayName ASC x', 'a,b', 'toString'])(
  'the order %s is refused',
  (order) => {
    expect(() => listOrder(order)).toThrow(expect.objectContaining({ error: 'InvalidParams' }))
  },
)
