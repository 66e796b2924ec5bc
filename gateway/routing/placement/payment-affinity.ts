import type { IncomingHttpHeaders } from 'node:http'
import { PaymentRefused } from '@parley/engine/payments/x402/payment-refused'
import { readPresentedPayment } from '@parley/engine/payments/x402/presented-payment'
import { ParleyError } from '@parley/wire/errors'
import type { IncomingMessage } from '@parley/wire/model/call'
import { isExternal } from '../../registry/admission.ts'
import type { AgentDirectory } from '../../registry/agent-policies.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import { agentHasLeft, mayBeAt } from '../forwarding/upstream-error.ts'
import type { Route, RoutingStore } from '../store/routing-store.ts'
import { payeesOf } from './agent-prices.ts'
import type { Affinity } from './message-affinity.ts'
import type { LookupOwner, TaskLocator } from './task-locator.ts'

/** A message's payment: a signed transfer (without `payTo` if malformed) or the id of a session. */
export type PresentedPayment = { kind: 'transfer'; payTo?: string } | { kind: 'session'; id: string }

interface RouteSources {
  store: RoutingStore
  taskLocator: TaskLocator
}

/** The caller of a message with a payment. */
type PaymentCaller = Pick<LookupOwner, 'owner' | 'agents'>

/** How long a message stays with the agent that requested a payment for it. */
const pricedForMs = 15 * 60_000

export function presentedPayment(
  headers: IncomingHttpHeaders,
  { metadata }: IncomingMessage,
): PresentedPayment | undefined {
  try {
    const presented = readPresentedPayment(headers, metadata)
    if (presented?.kind === 'session') return { kind: 'session', id: presented.sessionId }
    return presented && { kind: 'transfer', payTo: presented.transfer.authorization.to.toLowerCase() }
  } catch (error) {
    // The agent itself reports what is wrong with the payment.
    if (error instanceof PaymentRefused) return { kind: 'transfer' }
    throw error
  }
}

/** Why an agent must not receive the payment. Only an agent whose card names the transfer's address may receive it. */
export function cannotBePaid(entry: AgentEntry, payment: PresentedPayment | undefined): string | undefined {
  if (payment?.kind !== 'transfer') return undefined
  const isPayee = payment.payTo !== undefined && payeesOf(entry).has(payment.payTo)
  return isPayee ? undefined : 'the payment of the message is for another address'
}

/** The error for a payment whose address belongs to no candidate. */
export function payeeUnknown(headers: Record<string, string>): ParleyError {
  const message =
    'The payment address belongs to no agent that can handle this task. Send the message without a payment first; a paid agent responds with its price'
  const data = {
    reason: 'payee_unknown',
    issues: [{ path: 'X-PAYMENT', message: 'belongs to no such agent' }],
  }
  return new ParleyError('InvalidParams', { message, data, headers })
}

/** Routes a message with a payment to the payee. No other agent receives the payment. */
export class PaymentAffinity {
  readonly #sources: RouteSources

  constructor(sources: RouteSources) {
    this.#sources = sources
  }

  /**
   * Returns the affinity of the message with its payment: the agent that created the session, or the agent that in
   * the last 15 minutes responded to the same `messageId` with 402 or received a payment for it.
   * @throws ParleyError Unavailable if that agent has left, NotFound for an unknown session, InvalidParams if the
   * task or context of the message belongs to another agent
   */
  async affinityOf(
    message: IncomingMessage,
    payment: PresentedPayment | undefined,
    caller: LookupOwner,
    ownAffinity: Promise<Affinity | undefined>,
  ): Promise<Affinity | undefined> {
    const [affinity, requester] = await Promise.all([
      ownAffinity,
      payment?.kind === 'session' ? undefined : this.#ofMessage(message.messageId, caller),
    ])
    const payee =
      payment?.kind === 'session' ? await this.#ofSession(payment.id, message, caller, affinity) : requester
    if (payee === undefined || payee.id === affinity?.entry.id) return affinity
    if (affinity === undefined) return { entry: payee, by: 'payment' }
    if (payment === undefined) return affinity
    const path = `message.${affinity.by === 'task' ? 'taskId' : 'contextId'}`
    const issues = [
      {
        path: affinity.by === 'key' ? 'message' : path,
        message: 'belongs to another agent than the payment',
      },
    ]
    throw new ParleyError('InvalidParams', { data: { issues } })
  }

  /** The change is durable when the promise resolves. */
  async recordRequest(
    { messageId }: IncomingMessage,
    owner: string,
    { id: agent }: AgentEntry,
  ): Promise<void> {
    const id = messageId.toLowerCase()
    await this.#sources.store.save([{ owner, kind: 'priced', id, agent, at: Date.now() }])
  }

  /** Runs before a payment is sent to the agent. Returns the agent to which another gateway sends it concurrently. */
  async claim(
    message: IncomingMessage,
    { owner, agents }: PaymentCaller,
    { id: agent }: AgentEntry,
  ): Promise<AgentEntry | undefined> {
    const { store } = this.#sources
    const mine: Route = { owner, kind: 'priced', id: message.messageId.toLowerCase(), agent, at: Date.now() }
    const existing = await store.claim(mine)
    if (existing.agent !== agent && existing.at >= mine.at - pricedForMs)
      return entryOf(existing.agent, agents)
    if (existing.at !== mine.at) await store.save([mine])
    return undefined
  }

  async #ofMessage(messageId: string, { owner, agents }: PaymentCaller): Promise<AgentEntry | undefined> {
    const route = await this.#sources.store.find(owner, 'priced', messageId.toLowerCase())
    if (route === undefined || route.at < Date.now() - pricedForMs) return undefined
    return entryOf(route.agent, agents)
  }

  async #ofSession(
    id: string,
    { messageId }: IncomingMessage,
    caller: LookupOwner,
    affinity: Affinity | undefined,
  ): Promise<AgentEntry | undefined> {
    const { store, taskLocator } = this.#sources
    const known = await store.find(caller.owner, 'session', id)
    // The agent that has the task validates the session.
    if (known === undefined && (affinity?.by === 'task' || affinity?.by === 'key')) return undefined
    const found = await taskLocator.find('session', id, caller)
    if ('route' in found) return entryOf(found.route.agent, caller.agents)
    const missing = [...found.silent, ...found.unknown]
    if (missing.length > 0) throw mayBeAt(missing, 'payment session')
    // External agents are not queried, so only the agent that requested the payment can have created the session.
    const requester = await this.#ofMessage(messageId, caller)
    if (requester !== undefined && isExternal(requester)) return requester
    throw new ParleyError('NotFound', {
      message: 'Payment session not found',
      data: { reason: 'payment_session' },
    })
  }
}

function entryOf(agent: string, agents: AgentDirectory): AgentEntry {
  const entry = agents.find(agent)
  if (entry === undefined) throw agentHasLeft('payment')
  return entry
}
