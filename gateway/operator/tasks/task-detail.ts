import { canceledTask, type taskDetail } from '@parley/wire/codecs/answers/operator/tasks'
import { ParleyError } from '@parley/wire/errors'
import type { z } from 'zod'
import type { Registry } from '../../registry/registry.ts'
import type { RoutingStore } from '../../routing/store/routing-store.ts'
import type { AgentReader, UnreadAgent } from '../agent-reader.ts'
import type { CallerView } from '../view.ts'
import type { TaskRow } from './clean-row.ts'
import type { FoundTask, TaskFinder } from './find-task.ts'
import { checkParts } from './part-checks.ts'
import { type RecordedTasks, recordedState } from './recorded-tasks.ts'
import { readChain } from './task-chain.ts'
import { requestOf } from './task-list.ts'

export type TaskDetail = z.output<typeof taskDetail>

export interface TaskDetailsOptions {
  finder: TaskFinder
  reader: Pick<AgentReader, 'read'>
  registry: Pick<Registry, 'find' | 'bySlug'>
  recorded: Pick<RecordedTasks, 'find'>
  store: Pick<RoutingStore, 'listDecisions'>
}

const agentCanceledTask = canceledTask.omit({ agent: true })
const cancelTimeoutMs = 5000

/** Reads and cancels single tasks (spec/operator.md#tasks). */
export class TaskDetails {
  readonly #options: TaskDetailsOptions

  constructor(options: TaskDetailsOptions) {
    this.#options = options
  }

  /** @throws ParleyError TaskNotFound, NotFound for an agent that does not exist, Unavailable if agents could not be read */
  async read(view: CallerView, id: string, agent: string | undefined): Promise<TaskDetail> {
    const { finder, recorded } = this.#options
    const decision = this.#decisionOf(view, id)
    const { found, unread } = await finder.find(view, id, { agent })
    if (found === undefined) {
      const row = await recorded.find(id, view.owner)
      if (row === undefined || (agent !== undefined && row.agent !== agent)) throw notFound(unread)
      return { ...row, ...withoutDetail, decision_id: await decision, unread: [] }
    }
    const shown = await this.#withOwnTexts(view, found)
    const { chain, clockSkewMs, unread: unreadChain } = await readChain(this.#options, view, shown)
    return {
      ...shown.detail,
      agent: shown.entry.slug,
      decision_id: await decision,
      chain,
      clock_skew_ms: clockSkewMs,
      signatures: checkParts(shown.detail.task, shown.entry),
      unread: unreadChain,
    }
  }

  /** @throws ParleyError TaskNotFound, TaskNotCancelable, UnsupportedOperation for a task of an external agent */
  async cancel(
    view: CallerView,
    id: string,
    agent: string | undefined,
  ): Promise<z.output<typeof canceledTask>> {
    const { finder, reader, recorded } = this.#options
    const { found, unread } = await finder.find(view, id, { agent })
    if (found === undefined) {
      const row = await recorded.find(id, view.owner)
      throw row === undefined ? notFound(unread) : notOurs(row)
    }
    const { entry } = found
    const { value } = await reader.read(entry, agentCanceledTask, {
      ...requestOf(view),
      group: 'tasks.cancel',
      path: `/operator/tasks/${encodeURIComponent(id)}/cancel`,
      body: {},
      timeoutMs: cancelTimeoutMs,
    })
    return { agent: entry.slug, task_id: id, state: value.state.slice(0, 40) }
  }

  /** The setting does not apply to the operator’s own tasks. */
  async #withOwnTexts(view: CallerView, found: FoundTask): Promise<FoundTask> {
    if (view.texts || found.detail.owner !== view.caller) return found
    const { caller, credentials } = view
    const own: CallerView = { caller, credentials, owner: caller, texts: true }
    const agent = found.entry.slug
    return (await this.#options.finder.find(own, found.detail.task_id, { agent })).found ?? found
  }

  async #decisionOf({ owner }: CallerView, task: string): Promise<string | null> {
    const until = Number.MAX_SAFE_INTEGER
    const { store } = this.#options
    const [decision] = await store.listDecisions({ owner, task, since: 0, until, skip: 0, limit: 1 })
    return decision?.id ?? null
  }
}

/** The fields that the gateway does not have for a task of an external agent. */
const withoutDetail = {
  events: [],
  runs: [],
  message_count: 0,
  children: [],
  references: [],
  webhooks: [],
  payments: [],
  usage: null,
  feedback: null,
  task: null,
  chain: [],
  clock_skew_ms: {},
  signatures: [],
} satisfies Partial<TaskDetail>

function notFound(unread: readonly UnreadAgent[]): ParleyError {
  if (unread.length === 0) return new ParleyError('TaskNotFound')
  return new ParleyError('Unavailable', {
    message: `The task was not found, but ${unread.length === 1 ? 'an agent' : `${unread.length} agents`} could not be read: try again later`,
    data: { reason: 'agents_unread', agents: unread.slice(0, 20).map(({ agent }) => agent) },
    headers: { 'retry-after': '2' },
  })
}

function notOurs({ agent }: TaskRow): ParleyError {
  return new ParleyError('UnsupportedOperation', {
    message: `Agent ${agent} is external, and only the owner of the task can cancel it there`,
    data: { reason: 'external_agent', agent, state: recordedState },
  })
}
