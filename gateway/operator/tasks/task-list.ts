import { agentWaitingList, type taskListQuery } from '@parley/wire/codecs/answers/operator/tasks'
import type { z } from 'zod'
import type { AgentEntry } from '../../registry/entry.ts'
import type { AgentReader, OperatorRequest, UnreadAgent } from '../agent-reader.ts'
import type { CallerView } from '../view.ts'
import { type AgentsToRead, agentsToRead, type ReadSources } from './agents-to-read.ts'
import { type AgentTaskRow, cleanRow, isVisible, type TaskRow } from './clean-row.ts'
import {
  isAfter,
  listPath,
  type MergedCursors,
  mergePages,
  type Position,
  type SourcePage,
  sameTimeMax,
} from './merge-pages.ts'
import { type RecordedTasks, recordedState } from './recorded-tasks.ts'

export type TaskListQuery = z.output<typeof taskListQuery>
/** A row with the question of a task that waits. */
export type ListedTask = TaskRow & Pick<z.output<typeof agentWaitingList>['tasks'][number], 'question'>
export interface TaskPage {
  tasks: ListedTask[]
  next_cursor: string | null
  unread: UnreadAgent[]
}

export interface TaskListOptions extends ReadSources {
  reader: ReadSources['reader'] & Pick<AgentReader, 'readAll'>
  recorded: Pick<RecordedTasks, 'list'>
  cursors: MergedCursors
  /** Called with the rows of agents, so that a later request for one of the tasks finds its agent. */
  onRow?: (taskId: string, agent: string) => void
}

/** Leaves time to answer within 2 s if an agent does not respond. */
export const agentTimeoutMs = 1500
const listName = 'operator/tasks'

/** Agents list their tasks by the time of the status. */
const positionOf = ({ since: at, task_id: id }: Pick<TaskRow, 'since' | 'task_id'>): Position => ({
  at,
  id,
})

/** Lists the tasks of all agents and owners that a view contains, newest first (spec/operator.md#tasks). */
export class TaskLists {
  readonly #options: TaskListOptions

  constructor(options: TaskListOptions) {
    this.#options = options
  }

  /** @throws ParleyError InvalidParams, NotFound for an agent that does not exist */
  async list(view: CallerView, query: TaskListQuery): Promise<TaskPage> {
    const { cursors, recorded } = this.#options
    const { cursor, limit, ...filter } = query
    const after = cursors.open(listName, view, filter, cursor)
    const owner = view.owner ?? query.owner
    if (query.owner !== undefined && query.owner !== owner)
      return { tasks: [], next_cursor: null, unread: [] }
    const chosen = await agentsToRead(this.#options, { view, agent: query.agent, owner })
    const [{ pages, unread }, routes] = await Promise.all([
      this.#read(view, query, chosen, after),
      showsRecorded(query)
        ? recorded.list({ ...query, owner, after, limit: limit + sameTimeMax })
        : undefined,
    ])
    if (routes !== undefined)
      pages.push({ ...routes, items: routes.items.filter((row) => isAfter(positionOf(row), after)) })
    const { items, next } = mergePages(pages, limit, positionOf)
    return {
      tasks: items,
      next_cursor: next === undefined ? null : cursors.seal(listName, view, filter, next),
      unread: [...unread, ...chosen.unread],
    }
  }

  async #read(view: CallerView, query: TaskListQuery, { agents }: AgentsToRead, after: Position | undefined) {
    const { reader, onRow } = this.#options
    const request = { ...requestOf(view), path: listPath('/operator/tasks', query, after) }
    const { answers, unread } = await reader.readAll(agentWaitingList, request, { agents })
    const pages = answers.map(({ entry, value }): SourcePage<ListedTask> => {
      const rows = value.tasks.slice(0, query.limit + sameTimeMax)
      const items = rowsOf(rows, entry, view).filter((row) => isAfter(positionOf(row), after))
      for (const row of items) onRow?.(row.task_id, entry.slug)
      return { items, hasMore: value.next_cursor !== null && items.length > 0 }
    })
    return { pages, unread }
  }
}

/** The rows that belong to the view, which a hostile agent may have ignored. */
export function rowsOf<Row extends AgentTaskRow>(
  rows: readonly Row[],
  { slug }: Pick<AgentEntry, 'slug'>,
  view: CallerView,
): (Row & { agent: string })[] {
  return rows
    .filter(({ owner }) => isVisible(view, owner))
    .map((row) => ({ ...cleanRow(row, view), agent: slug }))
}

export function requestOf({ caller, owner, texts }: CallerView): Omit<OperatorRequest, 'path'> {
  const operator = { client: caller, texts, ...(owner !== undefined && { owner }) }
  return { group: 'tasks.read', operator, timeoutMs: agentTimeoutMs }
}

/** The state of recorded tasks is not known, so they match no other state. */
const showsRecorded = ({ state, waiting }: TaskListQuery) =>
  waiting !== true && (state === undefined || state.split(',').includes(recordedState))
