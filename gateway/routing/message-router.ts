import { randomUUID } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isObject } from '../../shared/jsonrpc/envelope.ts'
import { ParleyError } from '../../shared/jsonrpc/errors.ts'
import type { Log } from '../../shared/process/log.ts'
import { type MessageSend, messageSend, parseParams } from '../../shared/protocol/params.ts'
import type { AgentEntry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'
import { targetOf, type WayTo } from './agent-target.ts'
import { resultIn } from './ask-agent.ts'
import { type Delivered, type Delivery, deliver } from './deliver.ts'
import { InTurn } from './in-turn.ts'
import type { Lessons } from './lessons.ts'
import { type Home, homeOf } from './message-home.ts'
import { newRoutes } from './message-routes.ts'
import type { Decision, Negotiator, Question } from './negotiator.ts'
import { PaymentHomes, type Shown, shownIn } from './payment-home.ts'
import { type Name, Placement, settled } from './placement.ts'
import { begin, type Seen } from './relay.ts'
import { noAgent, nobodyFree, outcomeUnknown } from './routing-errors.ts'
import type { Route, RouteKind, RoutingStore } from './routing-store.ts'
import { firstEventOf, StreamEnd } from './stream-end.ts'
import { agentIsDown } from './upstream-error.ts'
import { textOf, wantedBy } from './wanted.ts'
import type { Whereabouts } from './whereabouts.ts'

export interface MessageRouterOptions {
  registry: Registry
  store: RoutingStore
  negotiator: Negotiator
  whereabouts: Whereabouts
  lessons: Lessons
  wayTo: WayTo
  seen: Seen
  log: Log
  /** ROUTE_MIN_SCORE. */
  minScore: number
  /** As in `Delivery`. */
  repeatMs?: number
}

/** A message as it came, from a caller who may send it. */
export interface Incoming {
  request: FastifyRequest
  reply: FastifyReply
  body: Buffer
  method: string
  params: Record<string, unknown>
  owner: string
}

/** Agents that get a chance at most, one after another. */
const triesMax = 5
/** Where these live an agent says with its answer. */
const ofAnswers = new Set<RouteKind>(['task', 'context'])

/** `message/send` and `message/stream` without a named agent: to where their task or context lives, else by negotiation. */
export class MessageRouter {
  readonly #options: MessageRouterOptions
  readonly #turns = new InTurn()
  readonly #paymentHomes: PaymentHomes

  constructor(options: MessageRouterOptions) {
    this.#options = options
    this.#paymentHomes = new PaymentHomes(options)
  }

  /** @throws ParleyError */
  route(incoming: Incoming): Promise<FastifyReply> {
    const { request, params, owner } = incoming
    const { message } = parseParams(messageSend, params)
    const shown = shownIn(request.headers, message)
    const paid = shown === undefined ? undefined : message.messageId.toLowerCase()
    const named = [message.taskId, message.contextId, keyOf(request), paid]
    const names = named.flatMap((id, at) => (id === undefined ? [] : [JSON.stringify([owner, at, id])]))
    return this.#turns.run(names, () => this.#route(incoming, shown))
  }

  async #route(incoming: Incoming, shown: Shown | undefined): Promise<FastifyReply> {
    const { request, owner, params } = incoming
    const sent = parseParams(messageSend, params)
    const key = keyOf(request)
    const asking = { owner, headers: request.headers, requestId: request.id }
    const itsOwn = homeOf(this.#options, sent.message, key, asking)
    const home = await this.#paymentHomes.homeOf(sent.message, shown, asking, itsOwn)
    const words = this.#options.lessons.wordsOf(textOf(sent.message))
    const { message } = sent
    const sending: Sending = {
      ...incoming,
      message,
      shown,
      key: key ?? randomUUID(),
      keyIsTheirs: key !== undefined,
      words,
    }
    if (home !== undefined) return this.#toHome(sending, home)
    const configuration = params['configuration']
    const wanted = wantedBy(
      sent,
      isObject(configuration) ? configuration['negotiation'] : undefined,
      this.#options.minScore,
    )
    const refuse = incoming.method === 'message/stream' ? (id: string) => this.#cannotStream(id) : undefined
    const question = { wanted, owner, method: incoming.method, ...(refuse && { refuse }) }
    return this.#toBest(sending, question)
  }

  /** A message of a task or context stays with its agent, whatever happens there. */
  async #toHome(sending: Sending, { entry, by }: Home): Promise<FastifyReply> {
    const holder = by === 'key' ? undefined : await this.#bound(sending, entry)
    if (holder !== undefined) return this.#toHome(sending, holder)
    const delivered = await this.#deliver(sending, entry)
    const headers = { 'x-agent': entry.slug }
    if (delivered.kind === 'unknown') throw await this.#unknown(sending, entry, headers)
    if (delivered.kind === 'not taken') {
      if (delivered.answer !== undefined) return answer(sending.reply, entry, delivered.answer, headers)
      throw nobodyFree([{ agent: entry.slug, outcome: delivered.why }], headers)
    }
    return this.#finish(sending, entry, delivered, headers)
  }

  async #toBest(sending: Sending, question: Question): Promise<FastifyReply> {
    const { negotiator, registry } = this.#options
    const decision = await negotiator.decide(question)
    const named = { 'x-negotiation-id': decision.id }
    const record = () => negotiator.record(decision, question)
    if (decision.able.length === 0) {
      await record()
      throw noAgent(decision, negotiator.candidatesOut(decision.ranking.candidates.slice(0, 5)), named)
    }
    // A payment is shown to one agent: one that was busy may have taken it.
    const tries = sending.shown === undefined ? triesMax : 1
    const placement = new Placement(this.#options.store, this.#newNames(sending))
    for (const { id } of decision.able.slice(0, tries)) {
      const entry = registry.find(id)
      if (entry === undefined) continue
      // Before a byte of it leaves: what comes again, or comes to another gateway, must find the same agent.
      const holder = await this.#standing(sending, entry, placement)
      if (holder !== undefined) return this.#toHome(sending, holder)
      const delivered = await this.#deliver(sending, entry)
      decision.tried.push({ agent: entry.slug, outcome: outcomeOf(delivered) })
      if (delivered.kind === 'not taken') continue
      const headers = { ...named, 'x-agent': entry.slug }
      if (delivered.kind !== 'unknown')
        return this.#finish(sending, entry, delivered, headers, { records: [record], placement })
      await this.#quietly(Promise.all([record(), this.#options.store.save(placement.staying())]))
      throw await this.#unknown(sending, entry, headers)
    }
    await this.#quietly(placement.letGo())
    await record()
    throw nobodyFree(decision.tried, named)
  }

  #deliver({ request, reply, body, key }: Sending, entry: AgentEntry): Promise<Delivered> {
    const { seen, wayTo, repeatMs } = this.#options
    const delivery: Delivery = {
      request,
      reply,
      body,
      key,
      seen,
      ...(repeatMs !== undefined && { repeatMs }),
    }
    // Its own way of saying the method: the path of the call, if it has one.
    const path = request.url.split('?', 1)[0] ?? '/'
    try {
      return deliver(targetOf(entry, path, wayTo), delivery)
    } catch (error) {
      return Promise.resolve({ kind: 'not taken', why: 'not reached', error: error as Error })
    }
  }

  /** Where the task lives is durable before its sender hears of it. */
  async #finish(
    sending: Sending,
    entry: AgentEntry,
    delivered: Extract<Delivered, { kind: 'answered' | 'streams' }>,
    headers: Record<string, string>,
    { records = [], placement }: { records?: (() => Promise<void>)[]; placement?: Placement } = {},
  ): Promise<FastifyReply> {
    // Before the sender hears of the price: its payment must find the same agent.
    if (delivered.head.status === 402) await this.#noteAsked(sending, entry)
    const task = delivered.kind === 'streams' ? firstEventOf(delivered.first) : resultIn(delivered.bytes)
    const routes = await newRoutes(this.#options, { ...sending, agent: entry.id }, task)
    const writes = [
      ...records.map((record) => record()),
      this.#keep(routes, delivered.head.status, placement),
    ]
    await this.#quietly(Promise.all(writes))
    for (const { kind, id } of routes)
      if (kind === 'task' || kind === 'context') this.#options.whereabouts.appeared(kind, id, sending.owner)
    const route = routes.find(({ kind }) => kind === 'task')
    if (delivered.kind === 'answered') return answer(sending.reply, entry, delivered, headers)
    const { reply } = sending
    begin(reply, delivered.head, entry, headers)
    reply.raw.write(delivered.first)
    const taught = route?.words === undefined ? undefined : new StreamEnd(this.#options.lessons, route)
    taught?.chunk(delivered.first)
    delivered.exchange.pipe(reply.raw, taught)
    return reply
  }

  #noteAsked({ message, owner }: Sending, entry: AgentEntry): Promise<void> {
    return this.#paymentHomes.note(message, owner, entry)
  }

  /** What came of it is where it lives; an agent that refused the message has neither its context nor its task. */
  async #keep(routes: Route[], status: number, placement: Placement | undefined): Promise<void> {
    if (status >= 400 && status < 500) await placement?.letGo(ofAnswers)
    const known = new Set(routes.map(({ kind }) => kind))
    const others = placement?.staying().filter(({ kind }) => !known.has(kind)) ?? []
    await this.#options.store.save([...routes, ...others])
  }

  /** Binds the key to the agent; where another gateway has bound it meanwhile, its agent. */
  async #bound(sending: Sending, entry: AgentEntry): Promise<Home | undefined> {
    const { keyIsTheirs, key: id, owner } = sending
    if (!keyIsTheirs) return undefined
    const { store } = this.#options
    const mine: Route = { owner, kind: 'key', id, agent: entry.id, at: Date.now() }
    const standing = await settled(store, await store.claim(mine))
    if (standing === undefined) return this.#bound(sending, entry)
    return standing.agent === entry.id ? undefined : this.#homeAt(standing, 'key')
  }

  /** Undefined: it may be sent to the agent. Otherwise another gateway was quicker with the same. */
  async #standing(sending: Sending, entry: AgentEntry, placement: Placement): Promise<Home | undefined> {
    const standing = await placement.to(entry.id)
    if (standing !== undefined) return this.#homeAt(standing, standing.kind)
    if (sending.shown === undefined) return undefined
    const payee = await this.#paymentHomes.show(sending.message, sending.owner, entry)
    if (payee === undefined) return undefined
    await placement.letGo()
    return { entry: payee, by: 'payment' }
  }

  #homeAt({ agent }: Route, kind: RouteKind): Home {
    const entry = this.#options.registry.find(agent)
    if (entry === undefined) throw agentIsDown('that took it has left the registry and')
    return { entry, by: kind === 'key' || kind === 'task' ? kind : 'context' }
  }

  /** What must not be at two agents. Without other gateways tasks and contexts wait in line here. */
  #newNames({ message, key, keyIsTheirs, owner }: Sending): Name[] {
    const { shared } = this.#options.store
    const named: [RouteKind, string | undefined][] = [
      ['key', keyIsTheirs ? key : undefined],
      ['task', shared ? message.taskId : undefined],
      ['context', shared ? message.contextId : undefined],
    ]
    return named.flatMap(([kind, id]) => (id === undefined ? [] : [{ owner, kind, id }]))
  }

  #keepKey({ owner, key }: Sending, { id }: AgentEntry): Promise<void> {
    return this.#options.store.save([{ owner, kind: 'key', id: key, agent: id, at: Date.now() }])
  }

  async #unknown(sending: Sending, entry: AgentEntry, headers: Record<string, string>): Promise<ParleyError> {
    await this.#quietly(this.#keepKey(sending, entry))
    return outcomeUnknown(entry.slug, sending.key, headers)
  }

  /** A task that an agent has taken is answered, even if it cannot be noted where it is: it is found by asking. */
  async #quietly(write: Promise<unknown>): Promise<void> {
    await write.catch((error: unknown) =>
      this.#options.log.error({ err: error }, 'routes could not be written'),
    )
  }

  #cannotStream(id: string): string | undefined {
    const capabilities = this.#options.registry.find(id)?.card['capabilities']
    return isObject(capabilities) && capabilities['streaming'] === false ? 'it does not stream' : undefined
  }
}

interface Sending extends Incoming {
  message: MessageSend['message']
  /** It comes with a payment. */
  shown: Shown | undefined
  key: string
  keyIsTheirs: boolean
  words: Record<string, number>
}

/** @throws ParleyError InvalidParams */
function keyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key === 'string' && key.length > 0 && key.length <= 255) return key
  throw new ParleyError('InvalidParams', { message: 'Idempotency-Key must have 1 to 255 characters' })
}

function answer(
  reply: FastifyReply,
  entry: AgentEntry,
  { head, bytes }: { head: Parameters<typeof begin>[1]; bytes: Buffer },
  headers: Record<string, string>,
): FastifyReply {
  begin(reply, head, entry, headers)
  reply.raw.end(bytes)
  return reply
}

function outcomeOf(delivered: Delivered): Decision['tried'][number]['outcome'] {
  if (delivered.kind === 'not taken') return delivered.why
  return delivered.kind === 'unknown' ? 'unknown' : 'answered'
}
