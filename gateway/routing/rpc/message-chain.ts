import { hash, randomUUID } from 'node:crypto'
import { taskTextMaxChars, taskTextOf } from '@parley/negotiation/words/instruction'
import type { ChainLink, SendAnswer } from '@parley/wire/codecs/codec'
import { skillIdIn } from '@parley/wire/codecs/parley/metadata'
import type { SendMessage } from '@parley/wire/model/call'
import type { Task } from '@parley/wire/model/task'
import type { FastifyReply } from 'fastify'
import { resultOf } from '../forwarding/call-reader.ts'
import { needRequests } from '../negotiation/needs.ts'
import type { Negotiator } from '../negotiation/negotiator.ts'
import { refuseSplit, requirementsOf } from '../negotiation/requirements.ts'
import { presentedPayment } from '../placement/payment-affinity.ts'
import { type Incoming, keyOf, type PartAnswer } from '../placement/sending.ts'
import type { RoutingStore } from '../store/routing-store.ts'
import { refusalOf } from './agent-refusals.ts'
import { respond, withChain } from './chain-answer.ts'
import {
  bodyOf,
  type Chain,
  messageOfPart,
  type PlannedPart,
  paramsOfPart,
  taskIdOf,
} from './message-part.ts'

const listenersPerPart = 2

export interface MessageChainOptions {
  negotiator: Pick<Negotiator, 'decide'>
  store: Pick<RoutingStore, 'find'>
  /** ROUTE_MIN_SCORE. */
  minScore: number
  /** SEND_WAIT_MAX_SECONDS: after this time, no further part is started. */
  sendWaitMaxMs: number
  /** Routes a part like a separate message. */
  route: (incoming: Incoming, sent: SendMessage) => Promise<FastifyReply>
}

/**
 * Runs the needs of one message as a chain of tasks (spec/gateway-routing.md#several-needs): each part is routed like a
 * separate message, once the task of the part before has completed.
 */
export class MessageChain {
  readonly #options: MessageChainOptions

  constructor(options: MessageChainOptions) {
    this.#options = options
  }

  /**
   * Plans a chain. Returns undefined if the message is not split: it belongs to a task, a context or a skill, it has only one need, or one agent
   * serves all of them.
   * @throws ParleyError InvalidParams if the message could not be split even if it had several needs
   */
  async plan(incoming: Incoming, sent: SendMessage): Promise<Chain | undefined> {
    const { message, configuration = {} } = sent
    const { request, owner } = incoming
    if (message.taskId !== undefined || message.contextId !== undefined) return undefined
    if (skillIdIn(message.metadata) !== undefined) return undefined
    requireSplittable(incoming, sent)
    const text = message.parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n')
    // The rest of a longer text would be lost.
    if (text.trim() === '' || text.length > taskTextMaxChars) return undefined
    const theirs = keyOf(incoming)
    const key = theirs ?? randomUUID()
    if (theirs !== undefined && (await this.#options.store.find(owner, 'key', theirs)) !== undefined)
      return undefined
    const plan = await this.#partsOf(incoming, sent, text)
    if (plan === undefined) return undefined
    const isBegun =
      theirs !== undefined && (await this.#options.store.find(owner, 'key', keyOfPart(key, 1))) !== undefined
    if (!isBegun && !plan.isForSeveral) return undefined
    const waitMs = configuration.waitMs ?? this.#options.sendWaitMaxMs
    const until = Date.now() + Math.min(waitMs, this.#options.sendWaitMaxMs)
    const material = taskTextOf(text).payload
    request.log.debug({ parts: plan.parts.length }, 'a message is split')
    return { incoming, sent, parts: plan.parts, material, key, until }
  }

  /** The parts of the text with their agents. `isForSeveral` if each part has an agent, and not all have the same. */
  async #partsOf(
    incoming: Incoming,
    sent: SendMessage,
    text: string,
  ): Promise<{ parts: PlannedPart[]; isForSeveral: boolean } | undefined> {
    const { negotiator, minScore } = this.#options
    const { codec, params, owner, agents, method } = incoming
    const { taskDetails: _, ...others } = requirementsOf(sent, codec.readQuery(params), minScore)
    const wanted = { ...others, taskSummary: text }
    const requests = needRequests(wanted)
    if (requests.length < 2) return undefined
    const refuse = refusalOf({ ...incoming, message: sent.message, payment: undefined }, [])
    const { needs } = await negotiator.decide({ wanted, owner, agents, method, refuse })
    const slugs = needs.map(({ server }) => server?.slug)
    return {
      parts: requests.map((one, at) => ({ wanted: one, agent: slugs[at] })),
      isForSeveral: !slugs.includes(undefined) && new Set(slugs).size > 1,
    }
  }

  /** Runs the parts and answers the caller. @throws ParleyError, with the header that names the tasks */
  async run(chain: Chain): Promise<FastifyReply> {
    const { incoming, parts, until } = chain
    const { reply, codec } = incoming
    // The exchange of each part listens until the answer to the caller has been sent.
    reply.raw.setMaxListeners(reply.raw.getMaxListeners() + listenersPerPart * parts.length)
    const links: ChainLink[] = parts.map(({ agent }, at) => ({
      position: at + 1,
      agent,
      state: 'not-started',
    }))
    const ended: SendAnswer[] = []
    for (const [at, link] of links.entries()) {
      let answered: PartAnswer | undefined
      try {
        link.state = 'refused'
        answered = await this.#sendPart(chain, at, ended)
      } catch (error) {
        throw withChain(error, links, chain.key)
      }
      // The client has left.
      if (answered === undefined) return reply
      const result = answered.head.status === 200 ? resultOf(incoming, answered.bytes) : undefined
      const sent = result === undefined ? undefined : codec.readSendResult(result)
      links[at] = { ...link, agent: answered.entry.slug, ...(sent && linkOf(sent)) }
      const isOver = links[at]?.state !== 'completed' || Date.now() >= until || reply.raw.destroyed
      if (sent === undefined || isOver || at === links.length - 1) return respond(incoming, answered, links)
      ended.push(sent)
    }
    return reply
  }

  /** Resolves with undefined if the client has left. */
  #sendPart(chain: Chain, at: number, ended: readonly SendAnswer[]): Promise<PartAnswer | undefined> {
    const { incoming, sent, parts, key } = chain
    const { wanted } = parts[at] as PlannedPart
    const { configuration = {} } = sent
    const { acceptedOutputModes: outputs, ...others } = configuration
    const part: SendMessage = {
      ...sent,
      message: messageOfPart(chain, at, ended),
      configuration: {
        ...others,
        // The output types are those of the result that the caller receives.
        ...(outputs !== undefined && at === parts.length - 1 && { acceptedOutputModes: outputs }),
      },
    }
    const params = paramsOfPart(incoming, part)
    const { promise, resolve, reject } = Promise.withResolvers<PartAnswer | undefined>()
    const one = { key: keyOfPart(key, at + 1), wanted, receive: resolve }
    // Fastify's reply is a promise of the end of the response to the caller, which later parts determine.
    this.#options
      .route({ ...incoming, params, body: bodyOf(incoming, params), part: one }, part)
      .then(() => resolve(undefined), reject)
    return promise
  }
}

/** @throws ParleyError InvalidParams */
function requireSplittable({ operation, request }: Incoming, sent: SendMessage): void {
  const { message, configuration: { wait = false, waitMs = 0 } = {} } = sent
  if (operation === 'streamMessage')
    refuseSplit('A streamed message cannot be split: send it without streaming, and wait for the task')
  if (!wait && waitMs === 0)
    refuseSplit(
      'A message is split only if the response waits for its tasks: send it blocking, or with a waiting time',
    )
  if (presentedPayment(request.headers, message) !== undefined)
    refuseSplit('A message with a payment cannot be split: send its parts as separate messages')
  if (request.headers['x-did-signature'] !== undefined)
    refuseSplit(
      'A signed message cannot be split, because the signature covers the whole: send its parts instead',
    )
}

/** A message in place of a task is the result of a completed one. */
const linkOf = (one: SendAnswer): { taskId: string | undefined; state: Task['status']['state'] } => ({
  taskId: taskIdOf(one),
  state: one.kind === 'task' ? one.task.status.state : 'completed',
})

/** A key that only the request with this key can have. */
const keyOfPart = (key: string, position: number) => `part ${position} ${hash('sha256', key, 'hex')}`
