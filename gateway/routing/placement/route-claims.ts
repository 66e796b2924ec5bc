import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { Route, RouteKind, RoutingStore } from '../store/routing-store.ts'

type Store = Pick<RoutingStore, 'shared' | 'find' | 'claim' | 'exchange' | 'save'>

/** What of a caller must not be at two agents. */
export interface RouteKey {
  owner: string
  kind: RouteKind
  id: string
}

/** So long a gateway that finds an agent for something is waited for; then it stays where that one sent it last. */
const placedWithinMs = 3000
const lookEveryMs = 50

/** The route once it no longer moves; of a gateway that died in between, the agent it tried last. Undefined: nobody took it. */
export async function settledRoute(
  store: Pick<Store, 'find' | 'exchange'>,
  found: Route | undefined,
): Promise<Route | undefined> {
  let route = found
  let until = Date.now() + placedWithinMs
  while (route?.placing !== undefined) {
    const { placing } = route
    const stays = standing(route)
    if (Date.now() < until) await wait(lookEveryMs)
    // Whoever was sending it elsewhere finds out when it wants to move it.
    else if (await store.exchange(route, stays)) return stays
    route = await store.find(stays.owner, stays.kind, stays.id)
    if (route?.placing !== placing) until = Date.now() + placedWithinMs
  }
  return route
}

function standing(route: Route): Route {
  const { placing: _, ...stays } = route
  return stays
}

/**
 * Finds one agent for what is new (a context, a task, a key), though it comes to several gateways at once: who is first
 * holds its names in the store until an agent has taken it; the others wait, and follow.
 */
export class RouteClaims {
  readonly #store: Store
  readonly #names: readonly RouteKey[]
  #held: Route[] = []

  constructor(store: Store, names: readonly RouteKey[]) {
    this.#store = store
    this.#names = names
  }

  /** Before anything is sent to the agent. Undefined: it may be; else the route that stands, and none of the names is held. */
  async to(agent: string): Promise<Route | undefined> {
    const moved = this.#held.length > 0
    const there = moved ? await this.#move(agent) : await this.#claim(agent)
    if (there === undefined) return undefined
    await this.letGo()
    return (await settledRoute(this.#store, there)) ?? this.to(agent)
  }

  /** What is to be saved now that the agent has it, so that others need not wait. */
  staying(): Route[] {
    return this.#held.filter(({ placing }) => placing !== undefined).map(standing)
  }

  /** Nobody has taken it. */
  async letGo(kinds?: ReadonlySet<RouteKind>): Promise<void> {
    const goes = this.#held.filter(({ kind }) => kinds?.has(kind) !== false)
    this.#held = this.#held.filter((route) => !goes.includes(route))
    await Promise.all(goes.map((route) => this.#store.exchange(route, undefined)))
  }

  async #claim(agent: string): Promise<Route | undefined> {
    // In a store of this process alone, whoever shares a name waits in line already.
    const placing = this.#store.shared ? { placing: randomUUID() } : {}
    for (const name of this.#names) {
      const mine: Route = { ...name, agent, at: Date.now(), ...placing }
      const there = await this.#store.claim(mine)
      const isMine = this.#store.shared ? there.placing === mine.placing : there.agent === agent
      if (!isMine) return there
      this.#held.push(mine)
    }
    return undefined
  }

  async #move(agent: string): Promise<Route | undefined> {
    for (const [at, route] of this.#held.entries()) {
      const mine = { ...route, agent }
      if (await this.#store.exchange(route, mine)) this.#held[at] = mine
      else {
        this.#held.splice(at, 1)
        return (await this.#store.find(route.owner, route.kind, route.id)) ?? mine
      }
    }
    return undefined
  }
}
