import type { AgentDirectory } from '../../registry/agent-policies.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import { agentHasLeft } from '../forwarding/upstream-error.ts'
import type { Route, RouteKind, RoutingStore } from '../store/routing-store.ts'
import type { Affinity } from './message-affinity.ts'
import type { PaymentAffinity } from './payment-affinity.ts'
import { type RouteClaims, settledRoute } from './route-claims.ts'
import type { Sending } from './sending.ts'

export interface AffinityBindingsOptions {
  store: RoutingStore
  paymentAffinity: PaymentAffinity
}

/** Binds a message to one agent when several gateways receive it. Runs before the first byte is sent to an agent. */
export class AffinityBindings {
  readonly #options: AffinityBindingsOptions

  constructor(options: AffinityBindingsOptions) {
    this.#options = options
  }

  /** Binds the idempotency key to the agent. Returns the other agent if another gateway was first. */
  async bound(sending: Sending, entry: AgentEntry): Promise<Affinity | undefined> {
    const { keyIsTheirs, key: id, owner } = sending
    if (!keyIsTheirs) return undefined
    const { store } = this.#options
    const mine: Route = { owner, kind: 'key', id, agent: entry.id, at: Date.now() }
    const existing = await settledRoute(store, await store.claim(mine))
    if (existing === undefined) return this.bound(sending, entry)
    return existing.agent === entry.id ? undefined : affinityAt(existing, 'key', sending.agents)
  }

  /** Returns undefined if the message may be sent to the agent, otherwise the agent that another gateway chose first. */
  async claim(sending: Sending, entry: AgentEntry, routeClaims: RouteClaims): Promise<Affinity | undefined> {
    const existing = await routeClaims.claim(entry.id)
    if (existing !== undefined) return affinityAt(existing, existing.kind, sending.agents)
    if (sending.payment === undefined) return undefined
    const payee = await this.#options.paymentAffinity.claim(sending.message, sending, entry)
    if (payee === undefined) return undefined
    await routeClaims.release()
    return { entry: payee, by: 'payment' }
  }
}

function affinityAt({ agent }: Route, kind: RouteKind, agents: AgentDirectory): Affinity {
  const entry = agents.find(agent)
  if (entry === undefined) throw agentHasLeft('message')
  return { entry, by: kind === 'key' || kind === 'task' ? kind : 'context' }
}
