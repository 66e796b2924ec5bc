import type { CatalogEntry } from './catalog-entry.ts'
import { valuesAt } from './entry-filter.ts'

export interface FacetRequest {
  field: string
  limit: number
  minCount: number
}

export interface Facet {
  buckets: { value: string; count: number }[]
  /** The entries in buckets beyond the limit. */
  otherCount: number
}

/** Counts the entries by the values of a field: the most frequent value first, equal counts by value. */
export function facetOf(entries: readonly CatalogEntry[], { field, limit, minCount }: FacetRequest): Facet {
  const counts = new Map<string, number>()
  for (const entry of entries)
    for (const value of new Set(valuesAt(entry, field))) counts.set(value, (counts.get(value) ?? 0) + 1)
  const buckets = [...counts]
    .filter(([, count]) => count >= minCount)
    .map(([value, count]) => ({ value, count }))
    .toSorted((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1))
  const others = buckets.slice(limit).reduce((sum, { count }) => sum + count, 0)
  return { buckets: buckets.slice(0, limit), otherCount: others }
}
