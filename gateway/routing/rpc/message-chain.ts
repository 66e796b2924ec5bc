import { hash, randomUUID } from 'node:crypto'
import type { NegotiationRequest } from '@parley/negotiation/score/request'
import { taskTextMaxChars, taskTextOf } from '@parley/negotiation/words/instruction'
import type { ChainLink, SendAnswer } from '@parley/wire/codecs/codec'
import { skillIdIn } from '@parley/wire/codecs/parley/metadata'
import { idempotencyKeyOut } from '@parley/wire/codecs/parley/negotiation'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { IncomingMessage, SendMessage } from '@parley/wire/model/call'
import type { Part, Task } from '@parley/wire/model/task'
import { uuidOfHash, uuidPattern } from '@parley/wire/model/uuid'
import type { FastifyReply } from 'fastify'
import { resultOf } from '../forwarding/call-reader.ts'
import { needRequests } from '../negotiation/needs.ts'
import type { Negotiator } from '../negotiation/negotiator.ts'
import { refuseSplit, requirementsOf } from '../negotiation/requirements.ts'
import { presentedPayment } from '../placement/payment-affinity.ts'
import { type Incoming, keyOf, type PartAnswer } from '../placement/sending.ts'
import type { RoutingStore } from '../store/routing-store.ts'
import { refusalOf } from './agent-refusals.ts'
import { answer } from './response-forwarder.ts'

export interface MessageChainOptions {
  negotiator: Pick<Negotiator, 'decide'>
  store: Pick<RoutingStore, 'find'>
  /** ROUTE_MIN_SCORE. */
  minScore: number
  /** SEND_WAIT_MAX_SECONDS: after this time, no further part is started. */
  sendWaitMaxMs: number
  /** Routes a part like a message of its own. */
  route: (incoming: Incoming, sent: SendMessage) => Promise<FastifyReply>
}

/** The tasks of the chain, as JSON in ASCII characters. Responses without a task, such as errors, have only this header. */
const chainHeader = 'x-parley-chain'
const idMaxChars = 256
/** A longer result is read from its task only. */
const handedOnMaxChars = 100_000

/** A part of a request, and the agent that is expected to serve it. */
interface PlannedPart {
  wanted: NegotiationRequest
  agent: string | undefined
}

/** A message that is split into parts. */
export interface Chain {
  incoming: Incoming
  sent: SendMessage
  parts: readonly PlannedPart[]
  material: string
  /** The idempotency keys and message ids of the parts are derived from these, so that a repeated request repeats its chain. */
  key: string
  /** When the last part may start, in milliseconds since 1970. */
  until: number
}

/**
 * Runs the needs of one message as a chain of tasks (spec/gateway-routing.md#several-needs): each part is routed like a message of
 * its own, once the task of the part before has completed.
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
    refuseSplit('A message with a payment cannot be split: send its parts as messages of their own')
  if (request.headers['x-did-signature'] !== undefined)
    refuseSplit(
      'A signed message cannot be split, because the signature covers the whole: send its parts instead',
    )
}

/** The first part has the material and the files; the others have the text of the result before them. */
function messageOfPart(chain: Chain, at: number, ended: readonly SendAnswer[]): IncomingMessage {
  const { incoming, sent, parts, material, key } = chain
  const { messageName: _, referenceTaskIds, parts: all, ...message } = sent.message
  const need = parts[at]?.wanted.taskSummary ?? ''
  const last = ended.at(-1)
  const handedOn = last === undefined ? material : textOfAnswer(last)
  const files = at === 0 ? all.filter((part) => part.kind !== 'text') : []
  const tasks = ended.flatMap((one) => taskIdOf(one) ?? []).filter((id) => uuidPattern.test(id))
  const references = at === 0 ? referenceTaskIds : canGrant(incoming) ? tasks : []
  const texts = [need, ...(handedOn === '' ? [] : [handedOn])]
  return {
    ...message,
    messageId: uuidOfHash(hash('sha256', JSON.stringify([key, sent.message.messageId, at]), 'buffer')),
    parts: [...texts.map((text): Part => ({ kind: 'text', text })), ...files],
    ...(references !== undefined && references.length > 0 && { referenceTaskIds: references }),
  }
}

/** Whether the agent of a part can read the tasks before it (`ReferenceGrants`). */
function canGrant({ request }: Incoming): boolean {
  return request.token !== undefined && request.token.subject.introspection.cnf === undefined
}

/** The text of the artifacts, or of the message if there are none. Empty if it is too long. */
function textOfAnswer(one: SendAnswer): string {
  const artifacts = one.kind === 'task' ? one.task.artifacts : []
  const message = one.kind === 'task' ? one.task.status.message : one.message
  const parts =
    artifacts.length > 0 ? artifacts.flatMap((artifact) => artifact.parts) : (message?.parts ?? [])
  const text = parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n\n')
  return text.length > handedOnMaxChars ? '' : text
}

function taskIdOf(one: SendAnswer): string | undefined {
  const id = one.kind === 'task' ? one.task.id : one.message.taskId
  return id === '' ? undefined : id.slice(0, idMaxChars)
}

/** A message in place of a task is the result of a completed one. */
const linkOf = (one: SendAnswer): { taskId: string | undefined; state: Task['status']['state'] } => ({
  taskId: taskIdOf(one),
  state: one.kind === 'task' ? one.task.status.state : 'completed',
})

/** Keeps the fields of the params that only the dialect knows. */
function paramsOfPart({ codec, params }: Incoming, part: SendMessage): Record<string, unknown> {
  const written: unknown = JSON.parse(JSON.stringify(codec.writeParams('sendMessage', part)))
  if (!isObject(written)) return params
  const configuration = isObject(written['configuration']) ? written['configuration'] : {}
  const given = isObject(params['configuration']) ? params['configuration'] : {}
  const replaced = new Set([...Object.keys(configuration), 'acceptedOutputModes'].map(camelOf))
  const kept = Object.entries(given).filter(([name]) => !replaced.has(camelOf(name)))
  return {
    ...params,
    message: written['message'],
    configuration: { ...Object.fromEntries(kept), ...configuration },
  }
}

const camelOf = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

function bodyOf({ body, rest }: Incoming, params: Record<string, unknown>): Buffer {
  const envelope = rest === undefined ? parseJson(body) : undefined
  return Buffer.from(JSON.stringify(isObject(envelope) ? { ...envelope, params } : params))
}

/** A key that only the request with this key can have. */
const keyOfPart = (key: string, position: number) => `part ${position} ${hash('sha256', key, 'hex')}`

function respond(incoming: Incoming, answered: PartAnswer, links: readonly ChainLink[]): FastifyReply {
  const { entry, head, headers } = answered
  const bytes = withMetadata(incoming, answered, links)
  const length = { 'content-length': String(bytes.byteLength) }
  const changed = { head: { ...head, headers: { ...head.headers, ...length } }, bytes }
  return answer(incoming, entry, changed, { ...headers, [chainHeader]: headerOf(links) })
}

/** Errors keep their form, which the dialect or a payment scheme determines. */
function withMetadata(
  { codec, rest }: Incoming,
  { head, bytes }: PartAnswer,
  links: readonly ChainLink[],
): Buffer {
  const json = parseOrUndefined(bytes)
  if (head.status !== 200 || !isObject(json)) return bytes
  if (rest !== undefined) return Buffer.from(JSON.stringify(codec.writeChain(json, links)))
  if (!isObject(json['result'])) return bytes
  return Buffer.from(JSON.stringify({ ...json, result: codec.writeChain(json['result'], links) }))
}

function parseOrUndefined(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined
  }
}

const headerOf = (links: readonly ChainLink[]) =>
  JSON.stringify(links).replace(
    /[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

/** The error of a part. It names the key of the request, with which the caller may send all parts again. */
function withChain(thrown: unknown, links: readonly ChainLink[], key: string): ParleyError {
  const { error, message, status, data, headers } = ParleyError.from(thrown)
  const isRepeatable = headers['idempotency-key'] !== undefined
  return new ParleyError(error, {
    message,
    status,
    data: { ...data, ...(isRepeatable && idempotencyKeyOut(key)) },
    headers: {
      ...headers,
      ...(isRepeatable && { 'idempotency-key': key }),
      [chainHeader]: headerOf(links),
    },
    cause: thrown,
  })
}
