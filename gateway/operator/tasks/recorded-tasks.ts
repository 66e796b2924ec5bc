import { timestampOf } from '@parley/wire/model/timestamp'
import { isExternal } from '../../registry/admission.ts'
import type { Registry } from '../../registry/registry.ts'
import { claimKeptMs } from '../../routing/placement/task-locator.ts'
import type { Route, RoutingStore } from '../../routing/store/routing-store.ts'
import type { TaskRow } from './clean-row.ts'
import type { Position, SourcePage } from './merge-pages.ts'

export interface RecordedTasksOptions {
  registry: Pick<Registry, 'find' | 'bySlug'>
  store: Pick<RoutingStore, 'claimedTasks' | 'find'>
}

interface RecordedQuery {
  owner?: string | undefined
  agent?: string | undefined
  context?: string | undefined
  since?: string | undefined
  until?: string | undefined
  after?: Position | undefined
  limit: number
}

/** The state of a task of an agent that the gateway does not read. */
export const recordedState = 'unknown'

/** The tasks of external agents, of which the gateway knows the route. */
export class RecordedTasks {
  readonly #options: RecordedTasksOptions

  constructor(options: RecordedTasksOptions) {
    this.#options = options
  }

  async list(query: RecordedQuery): Promise<SourcePage<TaskRow>> {
    const { owner, agent, context, since, until, after, limit } = query
    const { registry, store } = this.#options
    const entry = agent === undefined ? undefined : registry.bySlug(agent)
    if (entry !== undefined && !isExternal(entry)) return { items: [], hasMore: false }
    const to = Math.min(claimTime(until), after === undefined ? Infinity : claimTime(after.at) + 1)
    const routes = await store.claimedTasks({
      ...(owner !== undefined && { owner }),
      ...(entry !== undefined && { agent: entry.id }),
      ...(since !== undefined && { from: claimTime(since) }),
      ...(to !== Infinity && { to }),
      limit,
    })
    const items = routes
      .filter((route) => context === undefined || route.context === context)
      .map((route) => this.#rowOf(route))
    return { items, hasMore: routes.length === limit }
  }

  /** Another owner's task is not found. */
  async find(id: string, owner: string | undefined): Promise<TaskRow | undefined> {
    const { store } = this.#options
    const route =
      owner === undefined
        ? (await store.claimedTasks({ id, limit: 1 }))[0]
        : await store.find(owner, 'task', id)
    return route?.claim === undefined ? undefined : this.#rowOf(route)
  }

  #rowOf({ owner, id, agent, context, at, claim }: Route): TaskRow {
    const sentAt = timestampOf((claim === undefined ? at : claim.until - claimKeptMs) * 1000)
    return {
      task_id: id,
      context_id: context ?? '',
      owner,
      state: recordedState,
      created_at: sentAt,
      updated_at: sentAt,
      since: sentAt,
      started_at: null,
      starts: 0,
      worked_ms: 0,
      deadline_at: null,
      skill: null,
      text: null,
      reason: null,
      parent: null,
      trace_id: null,
      agent: this.#options.registry.find(agent)?.slug ?? agent,
      recorded_only: true,
    }
  }
}

/** The expiry of a claim of this time. */
const claimTime = (time: string | undefined) =>
  time === undefined ? Infinity : Math.floor(Date.parse(time)) + claimKeptMs
