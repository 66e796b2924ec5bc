import type { AgentEntry } from '../../registry/entry.ts'
import type { Registry } from '../../registry/registry.ts'
import { agentHasLeft } from '../forwarding/upstream-error.ts'
import type { Route, RouteKind, RoutingStore } from '../store/routing-store.ts'
import type { Home } from './message-affinity.ts'
import type { PaymentHomes } from './payment-affinity.ts'
import { type Placement, settled } from './route-claims.ts'
import type { Sending } from './sending.ts'

export interface HoldersOptions {
  registry: Registry
  store: RoutingStore
  paymentHomes: PaymentHomes
}

/** Which agent may have a message that came to other gateways too. Asked before a byte of it leaves. */
export class Holders {
  readonly #options: HoldersOptions

  constructor(options: HoldersOptions) {
    this.#options = options
  }

  /** Binds the key to the agent; where another gateway has bound it meanwhile, its agent. */
  async bound(sending: Sending, entry: AgentEntry): Promise<Home | undefined> {
    const { keyIsTheirs, key: id, owner } = sending
    if (!keyIsTheirs) return undefined
    const { store } = this.#options
    const mine: Route = { owner, kind: 'key', id, agent: entry.id, at: Date.now() }
    const standing = await settled(store, await store.claim(mine))
    if (standing === undefined) return this.bound(sending, entry)
    return standing.agent === entry.id ? undefined : this.#homeAt(standing, 'key')
  }

  /** Undefined: it may be sent to the agent. Otherwise another gateway was quicker with the same. */
  async standing(sending: Sending, entry: AgentEntry, placement: Placement): Promise<Home | undefined> {
    const standing = await placement.to(entry.id)
    if (standing !== undefined) return this.#homeAt(standing, standing.kind)
    if (sending.shown === undefined) return undefined
    const payee = await this.#options.paymentHomes.show(sending.message, sending.owner, entry)
    if (payee === undefined) return undefined
    await placement.letGo()
    return { entry: payee, by: 'payment' }
  }

  #homeAt({ agent }: Route, kind: RouteKind): Home {
    const entry = this.#options.registry.find(agent)
    if (entry === undefined) throw agentHasLeft('message')
    return { entry, by: kind === 'key' || kind === 'task' ? kind : 'context' }
  }
}
