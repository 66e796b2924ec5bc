import type { IncomingHttpHeaders } from 'node:http'
import { RecentMap } from '../../shared/identity/recent-map.ts'
import { isObject } from '../../shared/jsonrpc/envelope.ts'
import { isStranger } from '../registry/admission.ts'
import type { AgentEntry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'
import { targetOf, type WayTo } from './agent-target.ts'
import { type Asked, askAgent, atOnce, getFromAgent, questionHeaders, rpcBody } from './ask-agent.ts'
import { charges } from './charges.ts'
import { exclusion } from './follow-registry.ts'

export interface AskAroundOptions {
  registry: Registry
  wayTo: WayTo
  /** For all questions together. Default 2 s. */
  askMs?: number
  /** Agents that are asked at most. Default 200. */
  agentsMax?: number
}

/** A caller's request, as far as a question in its name needs it. */
export interface Asking {
  headers: IncomingHttpHeaders
  requestId: string
}

/** What is asked for, and at whom. */
export interface Sought {
  kind: 'task' | 'context' | 'session'
  id: string
  among: Among
  /** Agents at which the caller has something: they come first. */
  known: ReadonlySet<string>
}

/**
 * `trusted`: the house's own agents and those that an operator admitted, where it decides to whom a message goes. `all`:
 * after them those that the open registry let in, which could claim whatever they are asked for.
 */
export type Among = 'all' | 'trusted'

export interface Heard {
  /** `context`: of a task its own, of a context itself. */
  claim?: { agent: string; context?: string }
  /** Slugs of agents that did not say whether they have it. */
  incomplete: string[]
  /** One of them at which the caller has something. */
  silentHome?: string
}

const askedAtOnce = 16
const answerMaxBytes = 1024 * 1024
/** Where a message waits for the answer, fewer are asked. */
const forMessagesMax = 32
/** An agent that let a question pass is not waited for again within this time. */
const silentForMs = 10_000

/** Asks the agents, with the caller's token, which of them has a task, a context or a payment session. */
export class AskAround {
  readonly #options: AskAroundOptions
  readonly #silentUntil = new RecentMap<string, number>(1000)

  constructor(options: AskAroundOptions) {
    this.#options = options
  }

  async ask(sought: Sought, asking: Asking): Promise<Heard> {
    const { askMs = 2000, agentsMax = 200 } = this.#options
    const most = sought.among === 'trusted' ? Math.min(agentsMax, forMessagesMax) : agentsMax
    const [trusted, strangers] = this.#agents(sought)
    const first = trusted.slice(0, most)
    const second = sought.among === 'all' ? strangers.slice(0, most - first.length) : []
    // Who is trusted has half of the time for itself: nobody else's claim is heard before its answer.
    const all = AbortSignal.timeout(askMs)
    const half = second.length === 0 ? all : AbortSignal.timeout(askMs / 2)
    const heard = await this.#askEach(first, sought, asking, half)
    if (heard.claim !== undefined || second.length === 0) return heard
    const rest = await this.#askEach(second, sought, asking, all)
    return { ...heard, ...rest, incomplete: [...heard.incomplete, ...rest.incomplete] }
  }

  async #askEach(agents: AgentEntry[], sought: Sought, asking: Asking, time: AbortSignal): Promise<Heard> {
    const found = new AbortController()
    const signal = AbortSignal.any([found.signal, time])
    const options = {
      headers: questionHeaders(asking.headers, asking.requestId),
      signal,
      answerMaxBytes,
    }
    const heard: Heard = { incomplete: [] }
    const isSilent = ({ id, slug }: AgentEntry) => {
      heard.incomplete.push(slug)
      if (sought.known.has(id)) heard.silentHome = slug
    }
    const askOne = async (entry: AgentEntry) => {
      try {
        if ((this.#silentUntil.get(entry.id) ?? 0) > Date.now()) throw new Error('was silent')
        const { status, result } = await this.#askOne(entry, sought, options)
        const claim = claimIn(sought, result)
        if (claim !== undefined && heard.claim === undefined) {
          heard.claim = { agent: entry.id, ...claim }
          found.abort()
        } else if (claim === undefined && saidNothing(status)) isSilent(entry)
      } catch {
        if (found.signal.aborted) return
        isSilent(entry)
        if (time.aborted) this.#silentUntil.set(entry.id, Date.now() + silentForMs)
      }
    }
    await atOnce(agents, askedAtOnce, askOne, () => signal.aborted)
    return heard
  }

  #askOne(
    entry: AgentEntry,
    { kind, id }: Sought,
    options: Parameters<typeof getFromAgent>[1],
  ): Promise<Asked> {
    const { wayTo } = this.#options
    if (kind === 'session') {
      const path = `/api/payment-status/${encodeURIComponent(id)}`
      return getFromAgent(targetOf(entry, path, wayTo), options)
    }
    const body =
      kind === 'task'
        ? rpcBody('tasks/get', { task_id: id, history_length: 0 })
        : rpcBody('tasks/list', { context_id: id, limit: 1, history_length: 0 })
    return askAgent(targetOf(entry, '/', wayTo), { ...options, body })
  }

  /** Those that are trusted, and the others; in both the caller's first, then the house's own. */
  #agents({ kind, known }: Sought): [AgentEntry[], AgentEntry[]] {
    const groups: AgentEntry[][] = [[], [], [], []]
    // A session of an agent that is away is not one that is not there.
    const isLeftOut = (entry: AgentEntry) =>
      kind === 'session'
        ? !charges(entry)
        : entry.quarantine?.by !== undefined || exclusion(entry) === 'unreachable'
    for (const entry of this.#options.registry.admitted()) {
      if (isLeftOut(entry)) continue
      const isKnown = known.has(entry.id)
      const at = isStranger(entry) ? 3 : isKnown ? 0 : entry.origin === 'supervised' ? 1 : 2
      const group = groups[at] as AgentEntry[]
      if (isKnown) group.unshift(entry)
      else group.push(entry)
    }
    return [groups.slice(0, 3).flat(), groups[3] as AgentEntry[]]
  }
}

/** It failed, or would not tell this caller's token; it may have it all the same. */
function saidNothing(status: number): boolean {
  return status >= 500 || status === 401 || status === 403 || status === 429
}

/** The context of the task, or the context itself, where the answer shows that what is sought is there. */
function claimIn({ kind, id }: Sought, result: unknown): { context?: string } | undefined {
  if (kind === 'session') return isObject(result) && result['session_id'] === id ? {} : undefined
  const task: unknown = kind === 'task' ? result : Array.isArray(result) ? result[0] : undefined
  if (!isObject(task)) return undefined
  const context = task['context_id']
  if (typeof context !== 'string' || context.length > 128) return undefined
  return (kind === 'task' ? task['id'] : context) === id ? { context } : undefined
}
