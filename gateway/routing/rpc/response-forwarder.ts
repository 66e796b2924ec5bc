import { cutStalled } from '@parley/kit/http/release-when-read'
import type { Log } from '@parley/kit/process/log'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyReply } from 'fastify'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Registry } from '../../registry/registry.ts'
import { resultOf } from '../forwarding/call-reader.ts'
import type { Delivered } from '../forwarding/deliver.ts'
import type { ResponseHead } from '../forwarding/exchange.ts'
import { begin } from '../forwarding/forward.ts'
import { outcomeStatus } from '../forwarding/refusal.ts'
import type { FeedbackRecorder } from '../learning/feedback.ts'
import { firstEventOf, StreamOutcomeObserver } from '../learning/stream-outcome.ts'
import { canBeRestored, newRoutes } from '../placement/message-routes.ts'
import type { PaymentAffinity } from '../placement/payment-affinity.ts'
import type { RouteClaims } from '../placement/route-claims.ts'
import type { Sending } from '../placement/sending.ts'
import type { TaskLocator } from '../placement/task-locator.ts'
import type { Route, RouteKind, RoutingStore } from '../store/routing-store.ts'
import { outcomeUnknown } from './routing-errors.ts'

export interface ResponseForwarderOptions {
  registry: Registry
  store: RoutingStore
  taskLocator: TaskLocator
  feedback: FeedbackRecorder
  paymentAffinity: PaymentAffinity
  log: Log
}

/** Route kinds that the agent's response determines. */
const ofAnswers = new Set<RouteKind>(['task', 'context'])

/** Records the routes of a response to a message and forwards the response to the caller. */
export class ResponseForwarder {
  readonly #options: ResponseForwarderOptions

  constructor(options: ResponseForwarderOptions) {
    this.#options = options
  }

  /** The routes that querying the agents cannot restore are durable before the first byte of the response. */
  async pass(
    sending: Sending,
    entry: AgentEntry,
    delivered: Extract<Delivered, { kind: 'answered' | 'streams' }>,
    headers: Record<string, string>,
    {
      record,
      routeClaims,
    }: { record?: (task: Route | undefined) => Promise<void>; routeClaims?: RouteClaims } = {},
  ): Promise<FastifyReply> {
    // Recorded before the caller receives the price, because its payment must be routed to the same agent.
    if (delivered.head.status === 402 || delivered.head.headers['payment-required'] !== undefined)
      await this.#options.paymentAffinity.recordRequest(sending.message, sending.owner, entry)
    const task =
      delivered.kind === 'streams' ? firstEventOf(delivered.first) : resultOf(sending, delivered.bytes)
    const routes = await newRoutes(this.#options, { ...sending, entry }, task)
    const route = routes.find(({ kind }) => kind === 'task')
    const recorded = record === undefined ? [] : [record(route)]
    const writes = [...recorded, this.#keep(entry, routes, statusOf(delivered), routeClaims)]
    await this.quietly(Promise.all(writes))
    for (const { kind, id } of routes)
      if (kind === 'task' || kind === 'context')
        this.#options.taskLocator.markExisting(kind, id, sending.owner)
    if (delivered.kind === 'answered') {
      const end = route?.words === undefined ? undefined : sending.codec.readEnd(task)
      if (route !== undefined && end !== undefined) this.#options.feedback.recordOutcome(route, end)
      return answer(sending, entry, delivered, headers)
    }
    if (sending.part !== undefined) {
      delivered.exchange.abort(
        new Error('a message that waits for its task must not be answered with a stream'),
      )
      throw new ParleyError('InvalidAgentResponse', {
        message: `Agent ${entry.slug} answered with a stream that was not requested`,
      })
    }
    const { reply } = sending
    begin(reply, delivered.head, entry, headers)
    reply.raw.write(delivered.first)
    const taught =
      route?.words === undefined
        ? undefined
        : new StreamOutcomeObserver(this.#options.feedback, route, sending.codec)
    taught?.chunk(delivered.first)
    delivered.exchange.pipe(reply.raw, taught)
    return reply
  }

  /** Saves the routes. Releases the claims on the task and context if the agent rejected the message. */
  async #keep(
    entry: AgentEntry,
    routes: Route[],
    status: number,
    routeClaims: RouteClaims | undefined,
  ): Promise<void> {
    if (status >= 400 && status < 500) await routeClaims?.release(ofAnswers)
    const known = new Set(routes.map(({ kind }) => kind))
    const others = routeClaims?.finalRoutes().filter(({ kind }) => !known.has(kind)) ?? []
    const all = [...routes, ...others.map((route) => this.#claimed(entry, route))]
    const { store } = this.#options
    if (!all.every((route) => canBeRestored(entry, route))) return store.save(all)
    const written = this.quietly(store.queueRoutes(all))
    // Other gateways find only what is stored.
    if (store.shared) await written
  }

  #claimed(entry: AgentEntry, route: Route): Route {
    const claim = ofAnswers.has(route.kind) ? this.#options.taskLocator.claimFor(entry, route) : undefined
    return claim === undefined ? route : { ...route, claim }
  }

  #keepKey({ owner, key }: Sending, { id }: AgentEntry): Promise<void> {
    return this.#options.store.save([{ owner, kind: 'key', id: key, agent: id, at: Date.now() }])
  }

  async unknown(sending: Sending, entry: AgentEntry, headers: Record<string, string>): Promise<ParleyError> {
    await this.quietly(this.#keepKey(sending, entry))
    return outcomeUnknown(entry.slug, sending.key, headers)
  }

  /** A response is forwarded even if its routes cannot be written, because querying the agents can find the task. */
  async quietly(write: Promise<unknown>): Promise<void> {
    await write.catch((error: unknown) => this.#options.log.error({ err: error }, 'failed to write routes'))
  }
}

function statusOf(delivered: Extract<Delivered, { kind: 'answered' | 'streams' }>): number {
  return delivered.kind === 'streams' ? delivered.head.status : outcomeStatus(delivered.head, delivered.bytes)
}

/** Sends a buffered response unmodified. The response to a part of a request goes to its chain. */
export function answer(
  { reply, part }: Pick<Sending, 'reply' | 'part'>,
  entry: AgentEntry,
  { head, bytes }: { head: ResponseHead; bytes: Buffer },
  headers: Record<string, string>,
): FastifyReply {
  if (part !== undefined) {
    part.receive({ entry, head, bytes, headers })
    return reply
  }
  begin(reply, head, entry, headers)
  cutStalled(reply.raw)
  reply.raw.end(bytes)
  return reply
}
