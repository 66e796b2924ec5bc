import type { IncomingHttpHeaders } from 'node:http'
import { RecentMap } from '../../shared/identity/recent-map.ts'
import { isObject } from '../../shared/jsonrpc/envelope.ts'
import type { AgentEntry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'
import { targetOf, type WayTo } from './agent-target.ts'
import { askAgent, atOnce, questionHeaders, rpcBody } from './ask-agent.ts'
import { exclusion } from './follow-registry.ts'
import type { Route, RoutingStore } from './routing-store.ts'

export interface WhereaboutsOptions {
  store: RoutingStore
  registry: Registry
  wayTo: WayTo
  /** For the question to all agents. Default 2 s. */
  askMs?: number
  /** Agents that are asked at most. Default 200. */
  agentsMax?: number
}

/** A caller's request, as far as a question in its name needs it. */
export interface Asking {
  owner: string
  headers: IncomingHttpHeaders
  requestId: string
}

export type Found = { route: Route } | { incomplete: string[] }

const askedAtOnce = 16
const answerMaxBytes = 1024 * 1024
/** Who asks for the same missing thing again need not make us ask all agents again. */
const missingForMs = 10_000

/** Where tasks and contexts live: in the store, or found by asking the agents once. */
export class Whereabouts {
  readonly #options: WhereaboutsOptions
  readonly #missing = new RecentMap<string, number>(10_000)

  constructor(options: WhereaboutsOptions) {
    this.#options = options
  }

  /** `incomplete` names agents that did not answer; one of them may have it. */
  async find(kind: 'task' | 'context', id: string, asking: Asking): Promise<Found> {
    const route = await this.#options.store.find(asking.owner, kind, id)
    if (route !== undefined) return { route }
    const key = JSON.stringify([asking.owner, kind, id])
    if ((this.#missing.get(key) ?? 0) > Date.now()) return { incomplete: [] }
    const found = await this.#ask(kind, id, asking)
    if ('route' in found) await this.#options.store.save([found.route])
    else if (found.incomplete.length === 0) this.#missing.set(key, Date.now() + missingForMs)
    return found
  }

  /** It is there from now on. */
  appeared(kind: 'task' | 'context', id: string, owner: string): void {
    this.#missing.delete(JSON.stringify([owner, kind, id]))
  }

  async #ask(kind: 'task' | 'context', id: string, asking: Asking): Promise<Found> {
    const { owner, headers, requestId } = asking
    const agents = await this.#agentsFor(owner)
    const body =
      kind === 'task'
        ? rpcBody('tasks/get', { task_id: id, history_length: 0 })
        : rpcBody('tasks/list', { context_id: id, limit: 1, history_length: 0 })
    const found = new AbortController()
    const signal = AbortSignal.any([found.signal, AbortSignal.timeout(this.#options.askMs ?? 2000)])
    const incomplete: string[] = []
    let route: Route | undefined
    const askOne = async (entry: AgentEntry) => {
      try {
        const target = targetOf(entry, '/', this.#options.wayTo)
        const options = { headers: questionHeaders(headers, requestId), body, signal, answerMaxBytes }
        const { status, result } = await askAgent(target, options)
        const context = contextIn(kind, result, id)
        if (context !== undefined && route === undefined) {
          route = { owner, kind, id, agent: entry.id, at: Date.now(), ...(kind === 'task' && { context }) }
          found.abort()
        } else if (status >= 500) incomplete.push(entry.slug)
      } catch {
        if (!found.signal.aborted) incomplete.push(entry.slug)
      }
    }
    await atOnce(agents, askedAtOnce, askOne, () => signal.aborted)
    return route === undefined ? { incomplete } : { route }
  }

  /** Those that have something of the caller first, then the house's own, then the others. */
  async #agentsFor(owner: string): Promise<AgentEntry[]> {
    const { store, registry, agentsMax = 200 } = this.#options
    const known = new Set(await store.agentsOf(owner, agentsMax))
    const rank = ({ id, origin }: AgentEntry) => (known.has(id) ? 0 : origin === 'supervised' ? 1 : 2)
    return registry
      .admitted()
      .filter((entry) => entry.quarantine?.by === undefined && exclusion(entry) !== 'unreachable')
      .sort((a, b) => rank(a) - rank(b))
      .slice(0, agentsMax)
  }
}

/** The context of the task, or the context itself, where the answer shows that it is there. */
function contextIn(kind: 'task' | 'context', result: unknown, id: string): string | undefined {
  const task: unknown = kind === 'task' ? result : Array.isArray(result) ? result[0] : undefined
  if (!isObject(task) || typeof task['context_id'] !== 'string') return undefined
  return (kind === 'task' ? task['id'] : task['context_id']) === id ? task['context_id'] : undefined
}
