import { RecentMap } from '@parley/kit/did/recent-map'
import { KeyedMutex } from '@parley/kit/process/keyed-mutex'
import { isExternal } from '../../registry/admission.ts'
import type { AgentDirectory } from '../../registry/agent-policies.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Claim, Route, RoutingStore } from '../store/routing-store.ts'
import {
  AgentFanout,
  type AgentFanoutOptions,
  type FanoutResult,
  type LookupCaller,
  type LookupKind,
} from './agent-fanout.ts'
import { settledRoute } from './route-claims.ts'

export interface TaskLocatorOptions extends AgentFanoutOptions {
  store: RoutingStore
}

/** The caller of a lookup, with the owner of the tasks. */
export interface LookupOwner extends LookupCaller {
  owner: string
}

/** The route, or the agents that may still have it (see `FanoutResult`). */
export type LookupResult = { route: Route } | Omit<FanoutResult, 'holder'>

/** A repeated lookup of the same missing id within this time does not query the agents again. */
const missingForMs = 10_000
/** Maximum number of agents with one caller's tasks that a lookup considers. */
const agentsMax = 1000
/** Maximum number of concurrent fan-outs for one caller. Further ones wait. */
const fanoutsMax = 4
/** Lifetime of an external agent's claim after the last message that was forwarded for it. */
export const claimKeptMs = 30 * 24 * 60 * 60 * 1000
/** How long a verified claim is valid before the supervised agents are queried again. */
const claimVerifiedMs = 60 * 60 * 1000

/**
 * Finds the agent of a task, context or payment session: by its stored route, or by querying the supervised agents
 * once. A route to an external agent rests on that agent's claim. It is valid only while no supervised agent has the
 * same id, which is verified before the first use and then every hour.
 */
export class TaskLocator {
  readonly #store: RoutingStore
  readonly #around: AgentFanout
  readonly #missing = new RecentMap<string, number>(10_000)
  readonly #underWay = new Map<string, Promise<LookupResult>>()
  readonly #turns = new KeyedMutex()
  #round = 0

  constructor({ store, ...options }: TaskLocatorOptions) {
    this.#store = store
    this.#around = new AgentFanout(options)
  }

  /** @param hurry whether to use the short deadline */
  async find(kind: LookupKind, id: string, caller: LookupOwner, hurry = false): Promise<LookupResult> {
    const route = await settledRoute(this.#store, await this.#store.find(caller.owner, kind, id))
    const claim = route === undefined ? undefined : claimOf(route, caller.agents)
    if (route !== undefined && isValid(claim)) return { route }
    const found = await this.#lookUp(kind, id, caller, hurry)
    if ('route' in found || route === undefined || claim === undefined || claim.until <= Date.now())
      return found
    if (found.silent.length > 0) return found
    await this.#store.verifyClaim(route, Date.now() + claimVerifiedMs)
    return { route }
  }

  /** The claim for a new route to the agent. `known` is the route to the same agent that the new route replaces. */
  claimFor(entry: AgentEntry, route: Route, known?: Route): Claim | undefined {
    if (!isExternal(entry)) return undefined
    const { kind, id, owner } = route
    const isMissing = kind !== 'key' && kind !== 'priced' && this.#isMissing(keyOf(owner, kind, id))
    const verifiedUntil = isMissing ? Date.now() + claimVerifiedMs : (known?.claim?.verifiedUntil ?? 0)
    return { until: Date.now() + claimKeptMs, verifiedUntil }
  }

  /** Records that the id exists from now on. */
  markExisting(kind: 'task' | 'context', id: string, owner: string): void {
    this.#missing.delete(keyOf(owner, kind, id))
  }

  #isMissing(key: string): boolean {
    return (this.#missing.get(key) ?? 0) > Date.now()
  }

  async #lookUp(kind: LookupKind, id: string, caller: LookupOwner, hurry: boolean): Promise<LookupResult> {
    const key = keyOf(caller.owner, kind, id)
    if (this.#isMissing(key)) return { silent: [], unknown: [] }
    const name = hurry ? `hurry ${key}` : key
    const underWay = this.#underWay.get(name) ?? this.#ask(kind, id, caller, hurry)
    this.#underWay.set(name, underWay)
    try {
      return await underWay
    } finally {
      this.#underWay.delete(name)
    }
  }

  async #ask(kind: LookupKind, id: string, caller: LookupOwner, hurry: boolean): Promise<LookupResult> {
    const { owner } = caller
    const known = new Set(await this.#store.agentsOf(owner, agentsMax))
    this.#round = (this.#round + 1) % fanoutsMax
    const turn = JSON.stringify([owner, this.#round])
    const ask = () => this.#around.ask({ kind, id, known, hurry }, caller)
    const { holder, ...others } = await this.#turns.run([turn], ask)
    if (holder === undefined) {
      if (others.silent.length === 0 && others.unknown.length === 0)
        this.#missing.set(keyOf(owner, kind, id), Date.now() + missingForMs)
      return others
    }
    const { agent, context } = holder
    const inContext = kind === 'task' && context !== undefined ? { context } : {}
    const route: Route = { owner, kind, id, agent, at: Date.now(), ...inContext }
    await this.#store.save([route])
    return { route }
  }
}

/** Returns undefined if the route needs no verification. Routes of earlier versions never carry a claim. */
function claimOf({ agent, claim, at }: Route, agents: AgentDirectory): Claim | undefined {
  const entry = agents.find(agent)
  if (entry === undefined) return claim
  return isExternal(entry) ? (claim ?? { until: at + claimKeptMs, verifiedUntil: 0 }) : undefined
}

function isValid(claim: Claim | undefined): boolean {
  return claim === undefined || Math.min(claim.until, claim.verifiedUntil) > Date.now()
}

const keyOf = (...parts: string[]) => JSON.stringify(parts)
