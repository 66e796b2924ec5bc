import type { IncomingHttpHeaders } from 'node:http'
import { RecentMap } from '@parley/kit/did/recent-map'
import { defaultDialect } from '@parley/wire/codecs/dialects'
import { readTaskReference } from '@parley/wire/codecs/parley/answers'
import { readSessionId } from '@parley/wire/codecs/parley/payments'
import { isRecorded } from '../../registry/admission.ts'
import type { AgentDirectory } from '../../registry/agent-policies.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import {
  forEachLimited,
  getFromAgent,
  type QueryResponse,
  queryAgent,
  queryHeaders,
  rpcBody,
} from '../forwarding/agent-query.ts'
import { type DispatcherFor, type Target, targetOf } from '../forwarding/agent-target.ts'
import type { AgentTokens } from '../forwarding/agent-tokens.ts'
import type { CallerToken } from '../forwarding/caller-token.ts'
import { isPaidAgent } from './agent-prices.ts'

export interface AgentFanoutOptions {
  dispatcherFor: DispatcherFor
  tokens: AgentTokens
  /** Whether an agent that is down is expected back. Lookups wait for no other absent agent. Default: every agent. */
  isAwaited?: (entry: AgentEntry) => boolean
  /** Deadline of a lookup. Default 2 s. */
  askMs?: number
  /** Deadline of a lookup with `hurry`. Default 700 ms. */
  hurryMs?: number
  /** Maximum number of agents queried. All others are reported as incomplete. Default 1000. */
  agentsMax?: number
}

/** The caller on whose behalf agents are queried. */
export interface LookupCaller {
  /** The agents that the caller may see. */
  agents: AgentDirectory
  headers: IncomingHttpHeaders
  /** The request's token, which is exchanged for each agent. */
  token: CallerToken | undefined
  requestId: string
}

export type LookupKind = 'task' | 'context' | 'session'

export interface Lookup {
  kind: LookupKind
  id: string
  /** Agents that have tasks of the caller. They are queried first. */
  known: ReadonlySet<string>
  /** Whether to use the short deadline, for a lookup that may remain without a result. */
  hurry: boolean
}

export interface FanoutResult {
  /** The agent that has the object; `context` is the task's context or the context itself. */
  holder?: { agent: string; context?: string }
  /** Slugs of agents that may have the object but do not respond, because they are frozen, restarting or overloaded. */
  silent: string[]
  /** Slugs of agents that may have the object but were not queried or rejected the query, so retrying does not help. */
  unknown: string[]
}

const concurrencyMax = 16
const answerMaxBytes = 1024 * 1024
/** An agent that missed a lookup's deadline counts as silent for this long without another query. */
const silentForMs = 5000

/**
 * Queries the supervised agents, on behalf of the caller, for the owner of a task, context or payment session. External
 * agents are never queried, because they could claim any id.
 */
export class AgentFanout {
  readonly #options: AgentFanoutOptions
  readonly #silentUntil = new RecentMap<string, number>(1000)

  constructor(options: AgentFanoutOptions) {
    this.#options = options
  }

  async ask(sought: Lookup, caller: LookupCaller): Promise<FanoutResult> {
    const { askMs = 2000, hurryMs = 700 } = this.#options
    const answered: FanoutResult = { silent: [], unknown: [] }
    const targets = this.#targets(sought, caller, answered)
    const found = new AbortController()
    const deadline = AbortSignal.timeout(sought.hurry ? hurryMs : askMs)
    const signal = AbortSignal.any([found.signal, deadline])
    const options = { headers: queryHeaders(caller.headers, caller.requestId), signal, answerMaxBytes }
    const pending = new Set(targets)
    const queryOne = async (target: Target) => {
      const { entry } = target
      try {
        const { status, result } = await this.#queryOne(target, sought, caller.token, options)
        pending.delete(target)
        const holder = claimIn(sought, result)
        if (holder !== undefined) {
          answered.holder ??= { agent: entry.id, ...holder }
          found.abort()
        } else if (isOverloaded(status)) answered.silent.push(entry.slug)
        else if (isRefusal(status)) answered.unknown.push(entry.slug)
      } catch {
        if (found.signal.aborted) return
        if (deadline.aborted) this.#silentUntil.set(memoOf(entry, sought.hurry), Date.now() + silentForMs)
      }
    }
    await forEachLimited(targets, concurrencyMax, queryOne, () => signal.aborted)
    if (answered.holder === undefined) for (const { entry } of pending) answered.silent.push(entry.slug)
    return answered
  }

  async #queryOne(
    { entry }: Target,
    { kind, id }: Lookup,
    token: CallerToken | undefined,
    options: Parameters<typeof getFromAgent>[1],
  ): Promise<QueryResponse> {
    const { dispatcherFor, tokens } = this.#options
    const path = kind === 'session' ? `/api/payment-status/${encodeURIComponent(id)}` : '/'
    const target = await tokens.authorize(targetOf(entry, path, dispatcherFor), token)
    if (kind === 'session') return getFromAgent(target, options)
    const codec = defaultDialect
    const operation = kind === 'task' ? 'getTask' : 'listTasks'
    const params =
      kind === 'task'
        ? codec.writeParams('getTask', { taskId: id, historyLength: 0 })
        : codec.writeParams('listTasks', { contextId: id, limit: 1, historyLength: 0 })
    const body = rpcBody(codec.methodOf(operation), params)
    return queryAgent(target, { ...options, body })
  }

  /** The agents to query. Agents that cannot be queried are added to `answered`. */
  #targets(
    { kind, known, hurry }: Lookup,
    { token, agents }: LookupCaller,
    answered: FanoutResult,
  ): Target[] {
    const { tokens, agentsMax = 1000, isAwaited = () => true } = this.#options
    const targets: Target[] = []
    const isSilent = (entry: AgentEntry) =>
      this.#wasSilent(memoOf(entry, false)) || (hurry && this.#wasSilent(memoOf(entry, true)))
    for (const entry of inOrder(agents.left(), known))
      if (known.has(entry.id) && (kind !== 'session' || isPaidAgent(entry))) answered.unknown.push(entry.slug)
    for (const entry of inOrder(agents.admitted(), known)) {
      if (kind === 'session' && !isPaidAgent(entry)) continue
      const isGone = !isAwaited(entry)
      if (isGone && !known.has(entry.id)) continue
      if (isGone || entry.quarantine?.by !== undefined) answered.unknown.push(entry.slug)
      else if ((entry.status !== 'ready' && entry.relay === undefined) || isSilent(entry))
        answered.silent.push(entry.slug)
      else if (targets.length >= agentsMax || !tokens.mayExchange(entry, token))
        answered.unknown.push(entry.slug)
      else {
        const target = this.#reach(entry)
        if (target === undefined) answered.unknown.push(entry.slug)
        else targets.push(target)
      }
    }
    return targets
  }

  #wasSilent(memo: string): boolean {
    return (this.#silentUntil.get(memo) ?? 0) > Date.now()
  }

  /** Undefined if this gateway cannot reach the agent, for example at a loopback address on another machine. */
  #reach(entry: AgentEntry): Target | undefined {
    try {
      return targetOf(entry, '/', this.#options.dispatcherFor)
    } catch {
      return undefined
    }
  }
}

/** The supervised agents, and relayed ones that have tasks of the caller, starting with those that have tasks of the caller. */
function inOrder(entries: readonly AgentEntry[], known: ReadonlySet<string>): AgentEntry[] {
  const ours = entries.filter(
    (entry) => !isRecorded(entry) || (entry.relay !== undefined && known.has(entry.id)),
  )
  return [...ours.filter(({ id }) => known.has(id)), ...ours.filter(({ id }) => !known.has(id))]
}

/** An agent that missed the short deadline may still meet the long one. */
const memoOf = ({ id }: AgentEntry, hurry: boolean) => (hurry ? `hurry ${id}` : id)

function isOverloaded(status: number): boolean {
  return status >= 500 || status === 429
}

/** The agent rejects the caller's token or an unsigned request, and may still have the task. */
function isRefusal(status: number): boolean {
  return status === 401 || status === 403
}

/** The task's context or the context itself; undefined if the response does not show the id. */
function claimIn({ kind, id }: Lookup, result: unknown): { context?: string } | undefined {
  if (kind === 'session') return readSessionId(result) === id ? {} : undefined
  const task: unknown = kind === 'task' ? result : Array.isArray(result) ? result[0] : undefined
  const { taskId, contextId } = readTaskReference(task) ?? {}
  if (typeof contextId !== 'string' || contextId.length > 128) return undefined
  return (kind === 'task' ? taskId : contextId) === id ? { context: contextId } : undefined
}
