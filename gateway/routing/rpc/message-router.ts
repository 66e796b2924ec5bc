import { randomUUID } from 'node:crypto'
import { KeyedMutex } from '@parley/kit/process/keyed-mutex'
import type { Log } from '@parley/kit/process/log'
import { inSpan, type SpanAttributes } from '@parley/kit/telemetry/tracing'
import { defaultDialect } from '@parley/wire/codecs/dialects'
import { skillIdIn } from '@parley/wire/codecs/parley/metadata'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import type { SendMessage } from '@parley/wire/model/call'
import { idsOf } from '@parley/wire/model/ids'
import type { FastifyReply } from 'fastify'
import type { CallerAccess } from '../../registry/caller-access.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Registry } from '../../registry/registry.ts'
import {
  callPath,
  type DispatcherFor,
  requireReady,
  type Target,
  targetOf,
} from '../forwarding/agent-target.ts'
import type { AgentTokens } from '../forwarding/agent-tokens.ts'
import { completeRequest, mayComplete, seededUuid } from '../forwarding/completed-request.ts'
import { type Delivered, type Delivery, deliver } from '../forwarding/deliver.ts'
import type { ReportSignal } from '../forwarding/forward.ts'
import type { ReferenceGrants } from '../forwarding/reference-grants.ts'
import { dialectUnsupported } from '../forwarding/refusal.ts'
import type { FeedbackRecorder } from '../learning/feedback.ts'
import { exclusionOf, waitMaxMs } from '../negotiation/availability.ts'
import { nextChoice, worthWaitingFor } from '../negotiation/choices.ts'
import type { Decision, DecisionRequest, Negotiator } from '../negotiation/negotiator.ts'
import { NewcomerShare } from '../negotiation/newcomer-share.ts'
import { maySplit, requirementsOf } from '../negotiation/requirements.ts'
import { AffinityBindings } from '../placement/bindings.ts'
import { type Affinity, affinityOf } from '../placement/message-affinity.ts'
import {
  PaymentAffinity,
  type PresentedPayment,
  payeeUnknown,
  presentedPayment,
} from '../placement/payment-affinity.ts'
import { preventMessage, RouteClaims, settledRoute } from '../placement/route-claims.ts'
import { claimedKeys, type Incoming, keyOf, type Sending } from '../placement/sending.ts'
import type { TaskLocator } from '../placement/task-locator.ts'
import type { Route, RoutingStore } from '../store/routing-store.ts'
import { isNotUnderstood, isOtherDialect, outcomeOf, refusalOf } from './agent-refusals.ts'
import { AgentWaits } from './agent-waits.ts'
import { MessageChain } from './message-chain.ts'
import { instructionOf } from './message-part.ts'
import { answer, ResponseForwarder } from './response-forwarder.ts'
import { noAgent, noAgentAvailable, noSuchTask } from './routing-errors.ts'

export interface MessageRouterOptions {
  registry: Registry
  access: CallerAccess
  store: RoutingStore
  negotiator: Negotiator
  taskLocator: TaskLocator
  feedback: FeedbackRecorder
  dispatcherFor: DispatcherFor
  tokens: AgentTokens
  /** Lets agents read the tasks that messages refer to. */
  grants: ReferenceGrants
  reportSignal: ReportSignal
  log: Log
  /** ROUTE_MIN_SCORE. */
  minScore: number
  /** SEND_WAIT_MAX_SECONDS. */
  sendWaitMaxMs: number
  /** See `Delivery`. */
  repeatMs?: number
  /** How long a message waits for an agent that may be back soon. Default 3 s. */
  waitMs?: number
}

/** Maximum number of agents tried for one message. */
const triesMax = 5

/** Routes `message/send` and `message/stream` without a named agent by their task or context, otherwise by negotiation. */
export class MessageRouter {
  readonly #options: MessageRouterOptions
  readonly #turns = new KeyedMutex()
  readonly #paymentAffinity: PaymentAffinity
  readonly #bindings: AffinityBindings
  readonly #responses: ResponseForwarder
  readonly #waits = new AgentWaits()
  readonly #newcomers = new NewcomerShare()
  readonly #chains: MessageChain

  constructor(options: MessageRouterOptions) {
    this.#options = options
    const paymentAffinity = new PaymentAffinity(options)
    this.#paymentAffinity = paymentAffinity
    this.#bindings = new AffinityBindings({ ...options, paymentAffinity })
    this.#responses = new ResponseForwarder({ ...options, paymentAffinity })
    this.#chains = new MessageChain({
      ...options,
      route: (incoming, sent) => this.#routeMessage(incoming, sent),
    })
  }

  /** @throws ParleyError */
  async route(incoming: Incoming): Promise<FastifyReply> {
    const { codec, params, owner } = incoming
    const sent = codec.readParams('sendMessage', params, idsOf(owner))
    if (maySplit(codec.readQuery(params))) {
      const chain = await this.#chains.plan(incoming, sent)
      if (chain !== undefined) return this.#chains.run(chain)
    }
    return this.#routeMessage(incoming, sent)
  }

  /** Routes a message, or a part of one. */
  async #routeMessage(incoming: Incoming, sent: SendMessage): Promise<FastifyReply> {
    const { request, owner } = incoming
    const { message } = sent
    const payment = presentedPayment(request.headers, message)
    const paid = payment === undefined ? undefined : message.messageId.toLowerCase()
    const { taskId: task, contextId: context } = message
    const named = Object.entries({ task, context, key: keyOf(incoming), paid })
    const names = named.flatMap(([kind, id]) => (id === undefined ? [] : [turnOf(owner, kind, id)]))
    const { answered } = await this.#turns.run(names, async () => {
      const placed = Promise.withResolvers<void>()
      const answered = this.#route(incoming, { sent, payment, onPlaced: placed.resolve })
      // Later messages of the same context do not wait until the task of this one has ended.
      await Promise.race([placed.promise, answered])
      return { answered }
    })
    return answered
  }

  /**
   * Returns the route of a task that a message with this key creates. Prevents the message if no agent has received it: an
   * agent that receives it at the moment is waited for.
   */
  async routeOrPrevent(owner: string, key: string, taskId: string): Promise<Route | undefined> {
    const { store } = this.#options
    return this.#turns.run([turnOf(owner, 'key', key)], async () => {
      const route = await settledRoute(store, await store.find(owner, 'task', taskId))
      return route ?? preventMessage(store, { owner, key })
    })
  }

  async #route(incoming: Incoming, { sent, payment, onPlaced }: Prepared): Promise<FastifyReply> {
    const { request, owner, agents, codec, params, part } = incoming
    const key = keyOf(incoming)
    const caller = { owner, agents, headers: request.headers, token: request.token, requestId: request.id }
    const found = affinityOf(this.#options, sent.message, key, caller)
    const ownAffinity = found.then(({ affinity }) => affinity)
    const affinity = await this.#paymentAffinity.affinityOf(sent.message, payment, caller, ownAffinity)
    const { mayHaveTask } = await found
    const features = this.#options.feedback.featuresOf(instructionOf({ part, message: sent.message }))
    const { message } = sent
    const sending: Sending = {
      ...incoming,
      message,
      payment,
      key: key ?? randomUUID(),
      keyIsTheirs: key !== undefined,
      waits: incoming.operation === 'sendMessage' && isWaiting(sent),
      at: Date.now(),
      onPlaced,
      words: features?.words ?? {},
    }
    if (
      sent.continues === true &&
      message.taskId !== undefined &&
      affinity?.by !== 'task' &&
      affinity?.by !== 'key'
    )
      throw noSuchTask(message.taskId, mayHaveTask)
    if (affinity !== undefined) return this.#toBound(sending, affinity)
    const negotiation = codec.readQuery(params)
    const wanted = part?.wanted ?? requirementsOf(sent, negotiation, this.#options.minScore)
    const minScoreIsOurs = !isObject(negotiation) || wanted.minScore === this.#options.minScore
    const refuse = refusalOf(sending, mayHaveTask)
    const newcomerWins = this.#shareOf()
    return this.#toBest(sending, {
      wanted,
      owner,
      agents,
      method: incoming.method,
      newcomerWins,
      refuse,
      minScoreIsOurs,
      features,
    })
  }

  /** A message with an affinity is sent to no other agent, even if the bound agent fails. */
  async #toBound(sending: Sending, { entry, by }: Affinity): Promise<FastifyReply> {
    const holder = by === 'key' ? undefined : await this.#bindings.bound(sending, entry)
    if (holder !== undefined) return this.#toBound(sending, holder)
    if (sending.waits) sending.onPlaced()
    const delivered = await this.#deliver(sending, entry, by === 'task')
    const headers = { 'x-agent': entry.slug }
    if (isOtherDialect(sending, entry, delivered)) throw dialectUnsupported(entry.slug)
    if (delivered.kind === 'unknown') throw await this.#responses.unknown(sending, entry, headers)
    if (delivered.kind === 'not taken') {
      if (delivered.answer !== undefined) return answer(sending, entry, delivered.answer, headers)
      throw noAgentAvailable([{ agent: entry.slug, outcome: delivered.why }], headers)
    }
    return this.#responses.pass(sending, entry, delivered, headers)
  }

  async #toBest(sending: Sending, question: DecisionRequest): Promise<FastifyReply> {
    const { store } = this.#options
    const decision = await this.#decide(sending, question)
    // The text was embedded for the decision, so that its vector is at hand.
    if (question.features !== undefined)
      await this.#options.feedback.addVector(instructionOf(sending), question.features)
    const named = { 'x-negotiation-id': decision.id }
    const record = (route?: Route) => this.#record(sending, { decision, question }, route)
    if (decision.order.length === 0) {
      await record()
      if (sending.payment?.kind === 'transfer') throw payeeUnknown(named)
      throw noAgent(decision, named)
    }
    // A payment goes to one agent only, because a busy agent may have accepted it.
    const tries = sending.payment === undefined ? triesMax : 1
    const routeClaims = new RouteClaims(store, claimedKeys(sending, store.shared), {
      isBlocking: sending.waits,
    })
    const notTaken = new Set<string>()
    let otherDialect: AgentEntry | undefined
    let refusal: { entry: AgentEntry; delivered: Extract<Delivered, { kind: 'answered' }> } | undefined
    while (notTaken.size < tries) {
      const id = nextChoice(decision.order, notTaken)?.ranked.id
      if (id === undefined) break
      notTaken.add(id)
      const entry = sending.agents.find(id)
      if (entry === undefined) continue
      // Claim before the first byte is sent: a repeated message must go to the same agent, even on another gateway.
      const holder = await this.#bindings.claim(sending, entry, routeClaims)
      if (holder !== undefined) return this.#toBound(sending, holder)
      if (sending.waits) sending.onPlaced()
      const delivered = await this.#deliver(sending, entry)
      const isUnknownDialect = isOtherDialect(sending, entry, delivered)
      const notUnderstood =
        isUnknownDialect || (sending.payment === undefined && isNotUnderstood(entry, delivered))
      decision.tried.push({ agent: entry.slug, outcome: notUnderstood ? 'refused' : outcomeOf(delivered) })
      // Nothing was sent to an agent that lacks the dialect, so that this does not count as a refusal.
      if (isUnknownDialect) {
        otherDialect ??= entry
        continue
      }
      // Try at most one further candidate.
      if (notUnderstood && delivered.kind === 'answered' && refusal === undefined) {
        refusal = { entry, delivered }
        continue
      }
      if (delivered.kind === 'not taken' && refusal !== undefined) break
      if (delivered.kind === 'not taken') continue
      const headers = { ...named, 'x-agent': entry.slug }
      if (delivered.kind !== 'unknown')
        return this.#responses.pass(sending, entry, delivered, headers, { record, routeClaims })
      await this.#responses.quietly(Promise.all([record(), store.save(routeClaims.finalRoutes())]))
      throw await this.#responses.unknown(sending, entry, headers)
    }
    await this.#responses.quietly(routeClaims.release())
    if (refusal !== undefined) {
      const headers = { ...named, 'x-agent': refusal.entry.slug }
      return this.#responses.pass(sending, refusal.entry, refusal.delivered, headers, { record })
    }
    await record()
    if (otherDialect !== undefined && decision.tried.every(({ outcome }) => outcome === 'refused'))
      throw dialectUnsupported(otherDialect.slug)
    throw noAgentAvailable(decision.tried, named, decision.order)
  }

  /** @param route the route of the task in the agent's response */
  #record(
    { owner, message }: Sending,
    { decision, question }: { decision: Decision; question: DecisionRequest },
    route?: Route,
  ): Promise<void> {
    const { negotiator, feedback } = this.#options
    const context = route?.context ?? message.contextId
    const key = context === undefined ? undefined : feedback.contextKey(owner, context)
    return negotiator.record(decision, question, { task: route?.id, context: key })
  }

  /** Makes the decision a step of the trace, with its candidates and scores. */
  #decide(sending: Sending, question: DecisionRequest): Promise<Decision> {
    return inSpan('negotiate', {}, async (span) => {
      const decision = await this.#patientlyDecide(sending, question)
      if (span.isRecording) span.set(attributesOf(decision))
      return decision
    })
  }

  /** Waits briefly for the best agent if it is starting or may be back soon. */
  async #patientlyDecide({ owner, reply, agents }: Sending, question: DecisionRequest): Promise<Decision> {
    const { negotiator, waitMs = waitMaxMs } = this.#options
    const until = Date.now() + waitMs
    for (;;) {
      const decision = await negotiator.decide(question)
      const awaited = worthWaitingFor(decision.order, nextChoice(decision.order))
      if (awaited.length === 0) return decision
      const isBack = () =>
        awaited.some(({ ranked }) => {
          const entry = agents.find(ranked.id)
          return entry !== undefined && exclusionOf(entry) === undefined
        })
      const hasLeft = () => reply.raw.destroyed
      if (!(await this.#waits.wait(owner, until, { isBack, hasLeft }))) return decision
    }
  }

  /** Whether a new agent may win. Evaluated once per message, even if the message is routed again. */
  #shareOf(): (evidenced: string) => boolean {
    let wins: boolean | undefined
    return (evidenced) => {
      wins ??= this.#newcomers.take(evidenced)
      return wins
    }
  }

  async #deliver(sending: Sending, entry: AgentEntry, continues = false): Promise<Delivered> {
    const { reportSignal, dispatcherFor, repeatMs, tokens, grants } = this.#options
    const { request, reply, key, claim } = sending
    await this.#requireSkill(sending, entry)
    let target: Target
    try {
      requireReady(entry)
      target = targetOf(entry, callPath(entry, request, sending.codec), dispatcherFor)
    } catch (error) {
      return { kind: 'not taken', why: 'not reached', error }
    }
    const authorized = await tokens.authorize(target, request.token)
    const delivery: Delivery = {
      request,
      reply,
      sent: await this.#completeRequest(sending, entry, continues),
      key,
      reportSignal,
      claim,
      waits: sending.waits,
      ...(repeatMs !== undefined && { repeatMs }),
    }
    // The relay's lists are read for callers with tasks there, also while the answer is awaited.
    if (sending.waits && entry.relay !== undefined)
      await this.#responses.quietly(this.#options.store.saveUse(sending.owner, entry.id))
    try {
      const references = await grants.create(request.token, entry.id, sending.message.referenceTaskIds)
      return await deliver({ ...authorized, references }, delivery)
    } catch (error) {
      return { kind: 'not taken', why: 'not reached', error }
    }
  }

  /** @throws ParleyError InsufficientPermissions if the caller may not use the skill that the message names */
  async #requireSkill({ agents, message, request }: Sending, entry: AgentEntry): Promise<void> {
    const skill = skillIdIn(message.metadata)
    if (typeof skill !== 'string' || agents.restrictions?.limited.has(entry.id) !== true) return
    await this.#options.access.requireSkill(request.token?.caller, entry, skill)
  }

  /** @param continues whether the message continues one of the agent's tasks */
  async #completeRequest(
    { request, body, codec, message, owner, key }: Sending,
    entry: AgentEntry,
    continues: boolean,
  ) {
    const { headers } = request
    if (codec !== defaultDialect || !mayComplete(entry, headers)) return { body }
    const seed = JSON.stringify([owner, key])
    const { taskId } = message
    const task = taskId === undefined ? undefined : await this.#options.store.find(owner, 'task', taskId)
    const contextId = task?.context ?? (continues ? undefined : seededUuid(seed, 'context'))
    return completeRequest(entry, { headers, body }, { seed, contextId })
  }
}

function attributesOf({ id, best, order, ranking }: Decision): SpanAttributes {
  const candidates = ranking.candidates.map(({ slug, score }) => `${slug} ${score}`)
  return {
    'parley.negotiation.id': id,
    'parley.negotiation.candidates': candidates,
    'parley.negotiation.excluded': ranking.excludedTotal,
    'parley.agent.chosen': nextChoice(order)?.ranked.slug,
    'parley.agent.score': best?.score,
  }
}

/** A message that has been read, before its agent is known. */
interface Prepared {
  sent: SendMessage
  payment: PresentedPayment | undefined
  /** See `Sending`. */
  onPlaced: () => void
}

function isWaiting({ configuration: { wait = false, waitMs = 0 } = {} }: SendMessage): boolean {
  return wait || waitMs > 0
}

const turnOf = (owner: string, kind: string, id: string) => JSON.stringify([owner, kind, id])
