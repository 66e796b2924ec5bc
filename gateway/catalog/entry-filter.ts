import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import type { CatalogEntry } from './catalog-entry.ts'

/** The terms by which entries can be filtered and counted. `metadata` and `trustManifest` continue with a dot and a path. */
const terms = [
  'identifier',
  'displayName',
  'type',
  'description',
  'tags',
  'capabilities',
  'version',
  'publisher',
]
const trees = ['metadata', 'trustManifest']

/** @throws ParleyError InvalidParams if entries cannot be filtered by the path */
export function checkPath(path: string): void {
  const [first = '', ...rest] = path.split('.')
  if (rest.length === 0 ? terms.includes(first) : trees.includes(first)) return
  const names = [...terms, ...trees.map((tree) => `${tree}.…`)].join(', ')
  const message = `cannot be filtered or counted by this field; the fields are ${names}`
  throw new ParleyError('InvalidParams', { data: { issues: [{ path: path.slice(0, 100), message }] } })
}

/** Returns the values of an entry at a path: those of all elements if there is an array on the way. */
export function valuesAt(entry: CatalogEntry, path: string): string[] {
  // The publisher is that in the identifier (section 5.3.1 of ARD).
  if (path === 'publisher') return [publisherIn(entry.identifier)]
  let values: unknown[] = [entry]
  for (const name of path.split('.'))
    values = values
      .flat()
      .flatMap((value) => (isObject(value) && Object.hasOwn(value, name) ? [value[name]] : []))
  return values.flat().flatMap((value) => (isScalar(value) ? [String(value)] : []))
}

/** Whether the entry has one of the values at each path. Ignores case. */
export function matchesFilter(
  entry: CatalogEntry,
  filter: ReadonlyMap<string, ReadonlySet<string>>,
): boolean {
  return [...filter].every(([path, wanted]) =>
    valuesAt(entry, path).some((value) => wanted.has(value.toLowerCase())),
  )
}

/** Reads the `filter` of a query. @throws ParleyError InvalidParams */
export function filterOf(given: Readonly<Record<string, string | string[]>> = {}): Map<string, Set<string>> {
  const pairs = Object.entries(given)
  for (const [path] of pairs) checkPath(path)
  return new Map(
    pairs.map(([path, values]) => [path, new Set([values].flat().map((one) => one.toLowerCase()))]),
  )
}

export const publisherIn = (identifier: string): string => identifier.split(':')[2] ?? ''

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
}
