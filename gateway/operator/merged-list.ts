import type { z } from 'zod'
import type { AgentAnswer, AgentReader, OperatorRequest, UnreadAgent } from './agent-reader.ts'
import { agentsToRead, type ReadSources } from './tasks/agents-to-read.ts'
import { isVisible } from './tasks/clean-row.ts'
import {
  isAfter,
  listPath,
  type MergedCursors,
  mergePages,
  type Position,
  sameTimeMax,
} from './tasks/merge-pages.ts'
import { agentTimeoutMs } from './tasks/task-list.ts'
import type { CallerView } from './view.ts'

export interface MergedListSources extends ReadSources {
  reader: ReadSources['reader'] & Pick<AgentReader, 'readAll'>
  cursors: MergedCursors
}

interface ListQuery {
  agent?: string | undefined
  owner?: string | undefined
  cursor?: string | undefined
  until?: string | undefined
  limit: number
}

/** A list that each agent has, and how its entries become those of the merged list. */
export interface AgentList<Answer extends { next_cursor: string | null }, Row extends { owner: string }> {
  /** The path at the agents, without the first slash. It names the cursors. */
  path: string
  group: OperatorRequest['group']
  schema: z.ZodType<Answer>
  rowsOf: (answer: Answer) => readonly Row[]
  /** Removes what the view does not show. An agent may have sent any text. */
  clean: (row: Row, view: CallerView) => Row
  positionOf: (row: Row) => Position
}

export interface MergedList<Answer, Row> {
  items: (Row & { agent: string })[]
  next_cursor: string | null
  unread: UnreadAgent[]
  answers: AgentAnswer<Answer>[]
}

/**
 * Reads a page of a list at all agents that the view contains, and merges the entries.
 *
 * @throws ParleyError InvalidParams, NotFound for an agent that does not exist, TooManyRequests
 */
export async function readMergedList<
  Answer extends { next_cursor: string | null },
  Row extends { owner: string },
>(
  { path, group, schema, rowsOf, clean, positionOf }: AgentList<Answer, Row>,
  sources: MergedListSources,
  view: CallerView,
  query: ListQuery,
): Promise<MergedList<Answer, Row>> {
  const { cursors, reader } = sources
  const { cursor, limit, ...filter } = query
  const after = cursors.open(path, view, filter, cursor)
  const owner = view.owner ?? query.owner
  if (query.owner !== undefined && query.owner !== owner)
    return { items: [], next_cursor: null, unread: [], answers: [] }
  const chosen = await agentsToRead(sources, { view, agent: query.agent, owner })
  const request = requestOf(view, group, listPath(`/${path}`, { ...query, owner }, after))
  const { answers, unread } = await reader.readAll(schema, request, { agents: chosen.agents })
  const pages = answers.map(({ entry, value }) => {
    const rows = rowsOf(value).slice(0, limit + sameTimeMax)
    const items = rows
      .filter((row) => isVisible(view, row.owner))
      .map((row) => ({ ...clean(row, view), agent: entry.slug }))
      .filter((row) => isAfter(positionOf(row), after))
    return { items, hasMore: value.next_cursor !== null && items.length > 0 }
  })
  const { items, next } = mergePages(pages, limit, positionOf)
  return {
    items,
    next_cursor: next === undefined ? null : cursors.seal(path, view, filter, next),
    unread: [...unread, ...chosen.unread],
    answers,
  }
}

/** A request to an agent with what the view contains. */
export function requestOf(
  { caller, owner, texts }: CallerView,
  group: OperatorRequest['group'],
  path: string,
): OperatorRequest {
  const operator = { client: caller, texts, ...(owner !== undefined && { owner }) }
  return { group, path, operator, timeoutMs: agentTimeoutMs }
}
