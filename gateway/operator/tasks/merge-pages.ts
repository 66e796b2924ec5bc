import type { Cursors } from '@parley/kit/database/cursor'
import { millisOf, timestampOf, timestampOfServer } from '@parley/wire/model/timestamp'
import { z } from 'zod'
import type { CallerView } from '../view.ts'

/** The place of an entry in a merged list: newest first, and by ID within the same microsecond. */
export interface Position {
  at: string
  id: string
}

/** The page of one source, in its order. */
export interface SourcePage<T> {
  items: readonly T[]
  hasMore: boolean
}

const position = z.tuple([z.string(), z.string()])

/** Seals and opens cursors, which are valid for one caller and one query. */
export class MergedCursors {
  readonly #cursors: Cursors

  constructor(cursors: Cursors) {
    this.#cursors = cursors
  }

  seal(list: string, view: CallerView, query: object, { at, id }: Position): string {
    return this.#cursors.seal(nameOf(list, query), view.caller, [at, id])
  }

  /** @throws ParleyError InvalidParams */
  open(list: string, view: CallerView, query: object, cursor: string | undefined): Position | undefined {
    if (cursor === undefined) return undefined
    const [at, id] = position.parse(this.#cursors.open(nameOf(list, query), view.caller, cursor))
    return { at, id }
  }
}

const nameOf = (list: string, query: object) =>
  JSON.stringify([list, Object.entries(query).sort(([a], [b]) => (a < b ? -1 : 1))])

/** Whether the entry comes after `before` in the list. */
export function isAfter({ at, id }: Position, before: Position | undefined): boolean {
  return before === undefined || at < before.at || (at === before.at && id < before.id)
}

/** The exclusive upper bound with which a source returns all entries after the position. */
function boundAfter({ at }: Position): string {
  return timestampOf((millisOf(at) + 1) * 1000)
}

/**
 * Merges pages. If a source has more entries, entries older than its last one wait for the next page, because the source may
 * have newer ones.
 */
export function mergePages<T>(
  pages: readonly SourcePage<T>[],
  limit: number,
  positionOf: (item: T) => Position,
): { items: T[]; next: Position | undefined } {
  const inOrder = (a: T, b: T) => (isAfter(positionOf(a), positionOf(b)) ? 1 : -1)
  const all = pages.flatMap(({ items }) => items).sort(inOrder)
  const bounds = pages.flatMap(({ items, hasMore }) =>
    hasMore ? (items.toSorted(inOrder).at(-1) ?? []) : [],
  )
  const bound = bounds.sort(inOrder)[0]
  const end = bound === undefined ? all.length : all.indexOf(bound) + 1
  const items = all.slice(0, Math.min(limit, end))
  const last = items.at(-1)
  const isComplete = items.length === all.length && bound === undefined
  return { items, next: isComplete || last === undefined ? undefined : positionOf(last) }
}

/** Further entries of the same millisecond as the end of the previous page. */
export const sameTimeMax = 20

/** Returns the path at which an agent has the entries of a merged list after a position. */
export function listPath(
  path: string,
  {
    limit,
    cursor: _cursor,
    agent: _agent,
    ...filter
  }: { limit: number; until?: string | undefined; [name: string]: unknown },
  after: Position | undefined,
): string {
  const bound = after === undefined ? undefined : boundAfter(after)
  const given = filter.until && timestampOfServer(filter.until)
  const until = bound !== undefined && (given === undefined || given === '' || bound < given) ? bound : given
  const search = new URLSearchParams({ limit: String(Math.min(200, limit + (after ? sameTimeMax : 0))) })
  for (const [name, value] of Object.entries({ ...filter, until }))
    if (value !== undefined) search.set(name, value)
  return `${path}?${search.toString()}`
}
