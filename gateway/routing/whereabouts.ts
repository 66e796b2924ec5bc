import { RecentMap } from '../../shared/identity/recent-map.ts'
import { type Among, AskAround, type AskAroundOptions, type Asking } from './ask-around.ts'
import { InTurn } from './in-turn.ts'
import { settled } from './placement.ts'
import type { Route, RoutingStore } from './routing-store.ts'

export interface WhereaboutsOptions extends AskAroundOptions {
  store: RoutingStore
}

/** Whose request it is that wants to know. */
export interface Owned extends Asking {
  owner: string
}

/** `silentHome`: one that did not say, and at which the caller has something. */
export type Found = { route: Route } | { incomplete: string[]; silentHome?: string }

/** Who asks for the same missing thing again need not make us ask all agents again. */
const missingForMs = 10_000
/** Rounds of one caller over the agents at a time; further ones wait for their turn. */
const roundsAtOnce = 4

type Kind = 'task' | 'context' | 'session'

/** Where tasks, contexts and payment sessions live: in the store, or found by asking the agents once. */
export class Whereabouts {
  readonly #store: RoutingStore
  readonly #around: AskAround
  readonly #missing = new RecentMap<string, number>(10_000)
  readonly #underWay = new Map<string, Promise<Found>>()
  readonly #turns = new InTurn()
  #round = 0

  constructor({ store, ...options }: WhereaboutsOptions) {
    this.#store = store
    this.#around = new AskAround(options)
  }

  /** `incomplete` names agents that did not say whether they have it. */
  async find(kind: Kind, id: string, asking: Owned, among: Among = 'all'): Promise<Found> {
    const route = await settled(this.#store, await this.#store.find(asking.owner, kind, id))
    if (route !== undefined) return { route }
    const key = keyOf(asking.owner, kind, id, among)
    if ((this.#missing.get(key) ?? 0) > Date.now()) return { incomplete: [] }
    const underWay = this.#underWay.get(key) ?? this.#ask(kind, id, asking, among)
    this.#underWay.set(key, underWay)
    try {
      return await underWay
    } finally {
      this.#underWay.delete(key)
    }
  }

  /** It is there from now on. */
  appeared(kind: 'task' | 'context', id: string, owner: string): void {
    for (const among of ['all', 'trusted'] as const) this.#missing.delete(keyOf(owner, kind, id, among))
  }

  async #ask(kind: Kind, id: string, asking: Owned, among: Among): Promise<Found> {
    const { owner } = asking
    const known = new Set(await this.#store.agentsOf(owner, 200))
    this.#round = (this.#round + 1) % roundsAtOnce
    const turn = JSON.stringify([owner, this.#round])
    const ask = () => this.#around.ask({ kind, id, among, known }, asking)
    const { claim, ...silent } = await this.#turns.run([turn], ask)
    if (claim === undefined) {
      if (silent.incomplete.length === 0)
        this.#missing.set(keyOf(owner, kind, id, among), Date.now() + missingForMs)
      return silent
    }
    const { agent, context } = claim
    const inContext = kind === 'task' && context !== undefined ? { context } : {}
    const route: Route = { owner, kind, id, agent, at: Date.now(), ...inContext }
    await this.#store.save([route])
    return { route }
  }
}

const keyOf = (...parts: string[]) => JSON.stringify(parts)
