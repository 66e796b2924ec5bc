import { RecentMap } from '@parley/kit/did/recent-map'
import { agentTaskDetail } from '@parley/wire/codecs/answers/operator/tasks'
import { ParleyError } from '@parley/wire/errors'
import type { z } from 'zod'
import type { AgentEntry } from '../../registry/entry.ts'
import { forEachLimited } from '../../routing/forwarding/agent-query.ts'
import type { AgentReader, UnreadAgent } from '../agent-reader.ts'
import { withoutSecrets } from '../deliveries/receiver-address.ts'
import type { CallerView } from '../view.ts'
import { agentsToRead, noSuchAgent, type ReadSources } from './agents-to-read.ts'
import { cleanRow, isShown, isVisible } from './clean-row.ts'
import { requestOf } from './task-list.ts'

export type AgentTaskDetail = z.output<typeof agentTaskDetail>

/** A task with the agent that has it. */
export interface FoundTask {
  entry: AgentEntry
  detail: AgentTaskDetail
  clockSkewMs: number | undefined
}

export interface FindTaskOptions extends ReadSources {
  reader: ReadSources['reader'] & Pick<AgentReader, 'read'>
}

const concurrencyMax = 16
const remembered = 20_000
/** Deadline of a search in all agents. */
const searchMs = 1800

/** Finds the agent of a task: the one that is known for it, or the first that has it. */
export class TaskFinder {
  readonly #options: FindTaskOptions
  readonly #agentOf = new RecentMap<string, string>(remembered)

  constructor(options: FindTaskOptions) {
    this.#options = options
  }

  /** Remembers the agent of a task that a list has shown. */
  remember(taskId: string, agent: string): void {
    this.#agentOf.set(taskId, agent)
  }

  /**
   * @param agent the slug of the only agent that may have the task
   * @returns the task, or the agents that could not be read and may have it
   * @throws ParleyError NotFound for an agent that does not exist, TooManyRequests; the agent's error if `agent` is given
   */
  async find(
    view: CallerView,
    id: string,
    { agent, signal }: { agent?: string | undefined; signal?: AbortSignal } = {},
  ): Promise<{ found?: FoundTask; unread: UnreadAgent[] }> {
    const { registry, reader } = this.#options
    if (agent !== undefined) {
      const entry = reader.find(agent)
      if (entry === undefined && registry.bySlug(agent) === undefined) throw noSuchAgent(agent)
      this.#options.budget.spend(view, 1)
      const found = entry && (await this.#readAt(entry, view, id, signal))
      return { ...(found && { found }), unread: [] }
    }
    const entry = await this.#knownAgent(view, id)
    if (entry !== undefined) {
      this.#options.budget.spend(view, 1)
      const found = await this.#readAt(entry, view, id, signal).catch(() => undefined)
      if (found !== undefined) return { found, unread: [] }
    }
    return this.#search(view, id, signal)
  }

  /** The agent that a list has shown for the task, or to which the gateway has sent the message of the caller. */
  async #knownAgent({ owner }: CallerView, id: string): Promise<AgentEntry | undefined> {
    const { reader, store } = this.#options
    const listed = this.#agentOf.get(id)
    if (listed !== undefined) return reader.find(listed)
    const route = owner === undefined ? undefined : await store.find(owner, 'task', id)
    return route && reader.readable().find((entry) => entry.id === route.agent)
  }

  async #search(view: CallerView, id: string, signal: AbortSignal | undefined) {
    const { agents, unread } = await agentsToRead(this.#options, { view })
    const stop = new AbortController()
    const deadline = AbortSignal.timeout(searchMs)
    const all = AbortSignal.any([stop.signal, deadline, ...(signal ? [signal] : [])])
    let found: FoundTask | undefined
    const pending = new Set(agents)
    const readOne = async (entry: AgentEntry) => {
      try {
        const here = await this.#readAt(entry, view, id, all)
        pending.delete(entry)
        if (here === undefined) return
        found ??= here
        stop.abort()
      } catch (error) {
        pending.delete(entry)
        unread.push({
          agent: entry.slug,
          reason: error instanceof Error ? error.message : 'It cannot be read.',
        })
      }
    }
    await forEachLimited(agents, concurrencyMax, readOne, () => all.aborted)
    if (found !== undefined) return { found, unread: [] }
    for (const { slug } of pending)
      unread.push({ agent: slug, reason: `Agent ${slug} was not read in time. Try again.` })
    return { unread }
  }

  /** Undefined if the agent does not have the task or the view does not contain it. */
  async #readAt(
    entry: AgentEntry,
    view: CallerView,
    id: string,
    signal: AbortSignal | undefined,
  ): Promise<FoundTask | undefined> {
    const path = `/operator/tasks/${encodeURIComponent(id)}`
    try {
      const { value, clockSkewMs } = await this.#options.reader.read(
        entry,
        agentTaskDetail,
        { ...requestOf(view), path },
        signal,
      )
      if (value.task_id !== id || !isVisible(view, value.owner)) return undefined
      this.remember(id, entry.slug)
      const detail = cleanRow(value, view)
      return { entry, detail: isShown(view, value.owner) ? detail : withoutTexts(detail), clockSkewMs }
    } catch (error) {
      if (error instanceof ParleyError && (error.error === 'TaskNotFound' || error.error === 'InvalidParams'))
        return undefined
      throw error
    }
  }
}

/** Agents leave the texts out themselves. This also covers an agent that ignores the statement. */
function withoutTexts({ events, webhooks, feedback, ...detail }: AgentTaskDetail): AgentTaskDetail {
  return {
    ...detail,
    events: events.map(({ text: _text, artifact_id: _artifact, ...event }) => event),
    webhooks: webhooks.map((webhook) => ({ ...webhook, ...withoutSecrets(webhook) })),
    feedback: feedback && { ...feedback, text: null },
    task: null,
  }
}
