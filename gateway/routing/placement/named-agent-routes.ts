import { setTimeout as wait } from 'node:timers/promises'
import { RecentMap } from '@parley/kit/did/recent-map'
import { releaseWhenRead } from '@parley/kit/http/release-when-read'
import type { AnswerBudget } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import type { Codec, MessageIds } from '@parley/wire/codecs/codec'
import { readSessionId } from '@parley/wire/codecs/parley/payments'
import { idsOf } from '@parley/wire/model/ids'
import { jsonOf } from '@parley/wire/model/json-text'
import { operations } from '@parley/wire/model/operation'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isRecorded } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Registry } from '../../registry/registry.ts'
import type { Target } from '../forwarding/agent-target.ts'
import { BufferedResponse } from '../forwarding/buffered-response.ts'
import { type ReadCall, resultOf } from '../forwarding/call-reader.ts'
import { hasFrame, isStream } from '../forwarding/deliver.ts'
import type { ResponseObserver } from '../forwarding/exchange.ts'
import type { ForwardOptions } from '../forwarding/forward.ts'
import { firstEventOf } from '../learning/stream-outcome.ts'
import type { Route, RoutingStore } from '../store/routing-store.ts'
import { newRoutes } from './message-routes.ts'
import type { TaskLocator } from './task-locator.ts'

export interface NamedAgentRoutesOptions {
  registry: Registry
  store: RoutingStore
  taskLocator: TaskLocator
  answers: AnswerBudget
  log: Log
}

/** A message to a named agent. */
interface Sent {
  request: FastifyRequest
  entry: AgentEntry
  codec: Codec
  message: MessageIds
}

const sessionPath = '/api/start-payment-session'
/** The use of a supervised agent is recorded once in this time, because most messages must not cause a write. */
const usedForMs = 3_600_000
const usesMax = 20_000
const firstFrameMaxBytes = 64 * 1024
/** The caller waits at most this long for the record of a route. */
const recordedWithinMs = 2000

/**
 * Records the routes of tasks and payment sessions that callers create at an external or relayed agent under
 * `/agents/{slug}/`, because the gateway does not query these agents without a record. Supervised agents are queried and need no
 * routes; of them, only the use is recorded.
 */
export class NamedAgentRoutes {
  readonly #options: NamedAgentRoutesOptions
  readonly #usedUntil = new RecentMap<string, number>(usesMax)

  constructor(options: NamedAgentRoutesOptions) {
    this.#options = options
  }

  /** Returns undefined if the response is not recorded. */
  observerOf(
    request: FastifyRequest,
    reply: FastifyReply,
    { entry, path }: Target,
    call: ReadCall | undefined,
  ): ForwardOptions['watch'] {
    if (request.token === undefined) return undefined
    if (!isRecorded(entry)) {
      if (request.method === 'POST') this.#recordUse(request.token.caller.id, entry)
      return undefined
    }
    const whole = (look: (bytes: Buffer) => Promise<void> | undefined) => {
      const claim = this.#options.answers.open(`external agent ${entry.slug}`)
      releaseWhenRead(reply, claim)
      return new BufferedResponse(claim, look)
    }
    if (path.split('?', 1)[0]?.endsWith(sessionPath) === true) {
      return ({ status }) =>
        status === 200 ? whole((bytes) => this.#recordSession(request, entry, bytes)) : undefined
    }
    const { store, log } = this.#options
    if (call?.operation === undefined || operations[call.operation].target !== 'message') return undefined
    const { codec } = call
    const message = codec.readMessageIds(call.params, idsOf(request.token.caller.id))
    const sent = { request, entry, codec, message }
    // An answer may wait for the task, which the caller's lists must have until then.
    if (entry.relay !== undefined)
      store.saveUse(request.token.caller.id, entry.id).catch((error: unknown) => {
        log.warn({ err: error }, 'failed to record the use of a relayed agent')
      })
    return (head) => {
      if (isStream(head)) return new FirstEvent((event) => this.#record(sent, event))
      return head.status === 200 ? whole((bytes) => this.#record(sent, resultOf(call, bytes))) : undefined
    }
  }

  /** Lists of the caller read the agents that it has used first. */
  #recordUse(owner: string, { id }: AgentEntry): void {
    const key = `${owner} ${id}`
    const now = Date.now()
    if ((this.#usedUntil.get(key) ?? 0) > now) return
    this.#usedUntil.set(key, now + usedForMs)
    this.#options.store.saveUse(owner, id).catch((error: unknown) => {
      this.#usedUntil.delete(key)
      this.#options.log.warn({ err: error }, 'failed to record the use of an agent')
    })
  }

  #recordSession(
    request: FastifyRequest,
    { id: agent }: AgentEntry,
    bytes: Buffer,
  ): Promise<void> | undefined {
    const sessionId = readSessionId(jsonOf(bytes.toString('utf8')))
    if (typeof sessionId !== 'string' || sessionId.length > 128) return undefined
    const at = Date.now()
    return this.#save(request, async (owner) => [{ owner, kind: 'session', id: sessionId, agent, at }])
  }

  #record({ request, ...sent }: Sent, task: unknown): Promise<void> {
    return this.#save(request, (owner) => newRoutes(this.#options, { ...sent, owner }, task))
  }

  /**
   * Resolves when the routes are stored, perhaps not on the disk yet, when that fails, or after 2 s: the agent has accepted the
   * message, so the caller receives the response in any case.
   */
  async #save(request: FastifyRequest, routesOf: (owner: string) => Promise<Route[]>): Promise<void> {
    const { log } = this.#options
    const timer = new AbortController()
    const late = wait(recordedWithinMs, undefined, { signal: timer.signal }).catch(() => {})
    const saved = this.#saveFor(request, routesOf)
      .catch((error: unknown) => {
        log.warn({ err: error }, 'failed to record the routes of a message to an external agent')
      })
      .finally(() => timer.abort())
    await Promise.race([saved, late])
    if (!timer.signal.aborted)
      log.warn(
        'a response was sent before its routes were recorded, because the store did not answer in time',
      )
  }

  async #saveFor({ token }: FastifyRequest, routesOf: (owner: string) => Promise<Route[]>): Promise<void> {
    const { store, taskLocator, registry } = this.#options
    if (token === undefined) return
    const routes = (await routesOf(token.caller.id)).map((route) => {
      const entry = registry.find(route.agent)
      const claim = route.claim ?? (entry && taskLocator.claimFor(entry, route))
      return claim === undefined ? route : { ...route, claim }
    })
    await store.save(routes, true)
    for (const { kind, id: routeId } of routes)
      if (kind === 'task' || kind === 'context') taskLocator.markExisting(kind, routeId, token.caller.id)
  }
}

/** Calls `onEvent` with the first event of a stream. */
class FirstEvent implements ResponseObserver {
  readonly #look: (event: unknown) => Promise<void>
  #bytes: Buffer = Buffer.alloc(0)
  #isDone = false

  constructor(look: (event: unknown) => Promise<void>) {
    this.#look = look
  }

  chunk(chunk: Buffer): Promise<void> | undefined {
    if (this.#isDone) return undefined
    this.#bytes = Buffer.concat([this.#bytes, chunk])
    const hasFirst = hasFrame(this.#bytes)
    if (!hasFirst && this.#bytes.byteLength <= firstFrameMaxBytes) return undefined
    const event = hasFirst ? firstEventOf(this.#bytes) : undefined
    this.#isDone = true
    this.#bytes = Buffer.alloc(0)
    return event === undefined ? undefined : this.#look(event)
  }

  end(): undefined {}
}
