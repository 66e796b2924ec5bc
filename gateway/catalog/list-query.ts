import { ParleyError } from '@parley/wire/errors'
import type { ListedEntry } from './catalog-entry.ts'
import { publisherIn } from './entry-filter.ts'

type Matches = (listed: ListedEntry) => boolean

const filterFields: Record<string, (values: string[]) => Matches> = {
  displayName:
    (values) =>
    ({ entry }) =>
      values.some((value) => entry.displayName.toLowerCase().includes(value.toLowerCase())),
  type:
    (values) =>
    ({ entry }) =>
      values.some((value) => entry.type === value.toLowerCase()),
  publisherId:
    (values) =>
    ({ entry }) =>
      values.some((value) => publisherIn(entry.identifier) === value.toLowerCase()),
  createdAfter: (values) => {
    const after = timeIn('createdAfter', values)
    return ({ createdAt }) => createdAt !== undefined && Date.parse(createdAt) > after
  },
  updatedAfter: (values) => {
    const after = timeIn('updatedAfter', values)
    return ({ entry }) => entry.updatedAt !== undefined && Date.parse(entry.updatedAt) > after
  },
}

/**
 * Reads the `filter` of `GET /agents` (appendix A of ARD): `type = 'a,b' AND updatedAfter > '2026-01-01'`. A comma separates
 * alternatives.
 * @throws ParleyError InvalidParams
 */
export function listFilter(text: string): Matches {
  const clause = /\s*([a-z]+)\s*(?:=|>)\s*(?:'([^']*)'|"([^"]*)"|([^\s'"]+))\s*/iy
  const conjunction = /AND\s/iy
  const rules: Matches[] = []
  let at = 0
  do {
    clause.lastIndex = at
    const [all = '', field = '', ...values] = clause.exec(text) ?? []
    const make = Object.hasOwn(filterFields, field) ? filterFields[field] : undefined
    if (make === undefined) throw invalidFilter(text)
    rules.push(make(splitValues(values.join(''))))
    at += all.length
    if (at === text.length) return (listed) => rules.every((matches) => matches(listed))
    conjunction.lastIndex = at
    at += conjunction.exec(text)?.[0].length ?? Number.NaN
  } while (at < text.length)
  throw invalidFilter(text)
}

const splitValues = (text: string) =>
  text
    .split(',')
    .map((value) => value.trim())
    .filter((value) => value !== '')

function timeIn(field: string, [value = '']: string[]): number {
  const time = /^\d{4}-\d{2}-\d{2}/.test(value) ? Date.parse(value) : Number.NaN
  if (Number.isNaN(time)) throw invalid('filter', `${field} needs an ISO 8601 time such as '2026-01-31'`)
  return time
}

function invalidFilter(text: string): ParleyError {
  const fields = Object.keys(filterFields).join(', ')
  const example = `type = 'application/a2a-agent-card+json' AND updatedAfter > '2026-01-31'`
  const start = text.slice(0, 80)
  return invalid('filter', `"${start}" is not a filter; its fields are ${fields}, for example: ${example}`)
}

const invalid = (path: string, message: string) =>
  new ParleyError('InvalidParams', { data: { issues: [{ path, message }] } })

/** The values by which a list is sorted, the identifier last. */
export type SortKey = string[]

const sortFields: Record<string, (listed: ListedEntry) => string> = {
  displayname: ({ entry }) => entry.displayName.toLowerCase(),
  name: ({ entry }) => entry.displayName.toLowerCase(),
  identifier: ({ entry }) => entry.identifier,
  type: ({ entry }) => entry.type,
  version: ({ entry }) => entry.version ?? '',
  updatedat: ({ entry }) => entry.updatedAt ?? '',
  createdat: ({ createdAt }) => createdAt ?? '',
}
const sortFieldsMax = 5

export interface ListOrder {
  keyOf: (listed: ListedEntry) => SortKey
  compare: (a: SortKey, b: SortKey) => number
}

/** Reads `orderBy`, for example `displayName` or `updatedAt DESC, name`. @throws ParleyError InvalidParams */
export function listOrder(text = ''): ListOrder {
  const parts = text.split(',').map((part) => part.trim().split(/\s+/))
  const named = text.trim() === '' ? [] : parts
  const orders = named.slice(0, sortFieldsMax).map(([name = '', direction = 'ASC', ...rest]) => {
    const field = name.replaceAll('_', '').toLowerCase()
    const read = Object.hasOwn(sortFields, field) ? sortFields[field] : undefined
    if (read === undefined || !/^(?:ASC|DESC)$/i.test(direction) || rest.length > 0)
      throw invalid(
        'orderBy',
        'is a list of displayName, identifier, type, version, updatedAt and createdAt, each with ASC or DESC',
      )
    return { read, sign: /^DESC$/i.test(direction) ? -1 : 1 }
  })
  const identity = { read: ({ entry }: ListedEntry) => entry.identifier, sign: 1 }
  const all = [...orders, identity]
  return {
    keyOf: (listed) => all.map(({ read }) => read(listed)),
    compare: (a, b) => {
      for (const [at, { sign }] of all.entries()) {
        const [one = '', other = ''] = [a[at], b[at]]
        if (one !== other) return one < other ? -sign : sign
      }
      return 0
    },
  }
}
