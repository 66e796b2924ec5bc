import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { ParleyError } from '@parley/wire/errors'
import type { Route, RouteKind, RoutingStore } from '../store/routing-store.ts'

type Store = Pick<RoutingStore, 'shared' | 'find' | 'claim' | 'exchange' | 'save'>

/** Identifies an owner's task, context or idempotency key, which must not be at two agents. */
export interface RouteKey {
  owner: string
  kind: RouteKind
  id: string
}

/** How long to wait for a gateway that is choosing an agent. After that, the route stays at the agent it tried last. */
const placedWithinMs = 3000
/** The same for a message that waits for its task. Agents refuse messages without delay, so a late answer is none. */
const blockingPlacedWithinMs = 250
const lookEveryMs = 50
/** In place of an agent: the message with this key was canceled before an agent received it. */
const preventedAgent = ''

/**
 * Waits until the route is final. If the gateway that claimed it has crashed, the route stays at the agent it tried
 * last. Returns undefined if no agent accepted the message.
 * @throws ParleyError TaskImmutable if the message was canceled before an agent received it
 */
export async function settledRoute(
  store: Pick<Store, 'find' | 'exchange'>,
  found: Route | undefined,
): Promise<Route | undefined> {
  let route = found
  let until = placedUntil(route)
  while (route?.placing !== undefined) {
    const { placing } = route
    const stays = withoutPlacing(route)
    if (Date.now() < until) await wait(lookEveryMs)
    // The gateway that holds the claim notices when it tries to move the route.
    else if (await store.exchange(route, stays)) return stays
    route = await store.find(stays.owner, stays.kind, stays.id)
    if (route?.placing !== placing || route.agent !== stays.agent) until = placedUntil(route)
  }
  if (route?.agent === preventedAgent)
    throw new ParleyError('TaskImmutable', {
      message: 'The task of this message was canceled before the message arrived',
      data: { reason: 'prevented' },
    })
  return route
}

/**
 * Prevents that an agent receives the message with this key later. Returns the route of the message if an agent may have
 * received it.
 */
export async function preventMessage(
  store: Pick<Store, 'find' | 'claim' | 'exchange'>,
  { owner, key }: { owner: string; key: string },
): Promise<Route | undefined> {
  const prevented: Route = { owner, kind: 'key', id: key, agent: preventedAgent, at: Date.now() }
  const there = await store.claim(prevented)
  if (there.agent === preventedAgent) return undefined
  // The route is removed if no agent has accepted the message.
  return (await settledRoute(store, there)) ?? preventMessage(store, { owner, key })
}

function placedUntil(route: Route | undefined): number {
  return Date.now() + (route?.isBlocking === true ? blockingPlacedWithinMs : placedWithinMs)
}

function withoutPlacing(route: Route): Route {
  const { placing: _, isBlocking: __, ...stays } = route
  return stays
}

/**
 * Claims the routes of a new context, task or key in the store, so that one agent gets it although several gateways
 * receive it at the same time: the first gateway holds the claims until an agent accepts, the others wait and follow.
 */
export class RouteClaims {
  readonly #store: Store
  readonly #names: readonly RouteKey[]
  readonly #isBlocking: boolean
  #held: Route[] = []

  /** @param options.isBlocking whether the agent answers once the task has ended or paused */
  constructor(store: Store, names: readonly RouteKey[], { isBlocking }: { isBlocking: boolean }) {
    this.#store = store
    this.#names = names
    this.#isBlocking = isBlocking
  }

  /** Runs before anything is sent to the agent. Returns undefined if claimed, otherwise the existing route. */
  async claim(agent: string): Promise<Route | undefined> {
    const moved = this.#held.length > 0
    const there = moved ? await this.#move(agent) : await this.#claim(agent)
    if (there === undefined) return undefined
    await this.release()
    return (await settledRoute(this.#store, there)) ?? this.claim(agent)
  }

  /** The final routes, to be saved once the agent has accepted. */
  finalRoutes(): Route[] {
    return this.#held.filter(({ placing }) => placing !== undefined).map(withoutPlacing)
  }

  /** Releases the claims (of these kinds) because no agent has accepted the message. */
  async release(kinds?: ReadonlySet<RouteKind>): Promise<void> {
    const goes = this.#held.filter(({ kind }) => kinds?.has(kind) !== false)
    this.#held = this.#held.filter((route) => !goes.includes(route))
    await Promise.all(goes.map((route) => this.#store.exchange(route, undefined)))
  }

  async #claim(agent: string): Promise<Route | undefined> {
    // Without other gateways, this process's keyed mutex is enough.
    const placing = this.#store.shared
      ? { placing: randomUUID(), ...(this.#isBlocking && { isBlocking: true as const }) }
      : {}
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
