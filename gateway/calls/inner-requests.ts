import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { AuthenticatedCaller } from '@parley/kit/auth/authenticate'
import type { InnerCall, InnerCalls } from '@parley/kit/auth/inner-calls'
import type { AnswerBudget, AnswerClaim } from '@parley/kit/process/answer-budget'
import { currentTrace } from '@parley/kit/telemetry/tracing'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyRequest, InjectOptions } from 'fastify'
import { callerTokenOf } from '../routing/forwarding/caller-token.ts'
import { ClientDisconnected } from '../routing/forwarding/forward.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The response to the request, for the inner requests that it causes. */
    response?: ServerResponse
  }
}

export interface InnerRequest {
  /** Default `POST`. A GET has no body. */
  method?: 'GET' | 'POST' | 'PUT' | 'DELETE'
  path: string
  /** The content type of a body is JSON by default. */
  headers: Record<string, string>
  body: string | Buffer
  signal?: AbortSignal | undefined
  /** The longest time until the end of the response. */
  maxMs?: number | undefined
}

export interface InnerResponse extends Disposable {
  status: number
  headers: OutgoingHttpHeaders
  /** Fails if the response is cut. */
  body: Readable
  /** Returns why the body failed: the reason for which its reader has left, or that it was cut. */
  failureOf: (error?: unknown) => unknown
}

/** Headers of the outer request from which a route and an agent read the client, its connection and the trace. */
const passed = [
  'accept-language',
  'b3',
  'baggage',
  'host',
  'traceparent',
  'tracestate',
  'user-agent',
  'via',
  'x-correlation-id',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
]

/** Sends requests to the routes of the gateway, in the same process and without a connection. */
export class InnerRequests {
  readonly #app: FastifyInstance
  readonly #inner: InnerCalls
  readonly #answers: AnswerBudget

  constructor(app: FastifyInstance, { inner, answers }: { inner: InnerCalls; answers: AnswerBudget }) {
    this.#app = app
    this.#inner = inner
    this.#answers = answers
    app.addHook('onRequest', (request, reply, done) => {
      request.response = reply.raw
      const call = inner.current
      if (call !== undefined) {
        call.response = reply.raw
        request.token = callerTokenOf(call.caller)
      }
      done()
    })
  }

  /** @param caller the caller of the inner requests */
  of(request: FastifyRequest, caller: AuthenticatedCaller): RequestSender {
    const { response } = request
    if (response === undefined) throw new Error('The request is not from a route of this server')
    const claim = this.#answers.open(caller.id)
    const pending: Pending = { leaves: new Set(), hasLeft: false }
    const closed = () => {
      claim[Symbol.dispose]()
      pending.hasLeft = !response.writableEnded
      // Answers that are still being read, after another one has failed, can no longer reach the client.
      for (const leave of pending.leaves) leave(clientHasLeft())
    }
    if (response.destroyed || response.closed) closed()
    else response.once('close', closed)
    let isClaimed = false
    const openClaim = () => {
      if (isClaimed) return this.#answers.open(caller.id)
      isClaimed = true
      return {
        reserve: (bytes: number) => claim.reserve(bytes),
        [Symbol.dispose]: () => {
          isClaimed = false
        },
      }
    }
    return { openClaim, send: (inner) => this.#send(inner, pending, { request, caller }) }
  }

  async #send(
    { signal, maxMs, ...inner }: InnerRequest,
    { leaves, hasLeft }: Pending,
    outer: { request: FastifyRequest; caller: AuthenticatedCaller },
  ): Promise<InnerResponse> {
    signal?.throwIfAborted()
    if (hasLeft) throw clientHasLeft()
    const call: InnerCall = { caller: outer.caller }
    let left: { reason: unknown } | undefined
    const leave = (reason: unknown) => {
      left ??= { reason }
      call.response?.destroy()
    }
    const aborted = () => leave(signal?.reason)
    const timer = maxMs === undefined ? undefined : setTimeout(() => leave(agentIsSlow()), maxMs)
    const forget = () => {
      leaves.delete(leave)
      clearTimeout(timer)
      signal?.removeEventListener('abort', aborted)
    }
    leaves.add(leave)
    signal?.addEventListener('abort', aborted, { once: true })
    try {
      const sent = injectOptions(inner, outer)
      // The request begins when the result of `inject` is awaited, which must be within the context.
      const answer = await this.#inner.run(call, async () => await this.#app.inject(sent))
      const body = answer.stream()
      return {
        status: answer.statusCode,
        headers: answer.headers,
        body,
        failureOf: (error) => (left === undefined ? cutOff(error) : left.reason),
        [Symbol.dispose]: () => {
          forget()
          if (!body.readableEnded) call.response?.destroy()
        },
      }
    } catch (error) {
      forget()
      if (left !== undefined) throw left.reason
      throw error instanceof ParleyError ? error : cutOff(error)
    }
  }
}

function injectOptions(
  { method = 'POST', path, headers, body }: Pick<InnerRequest, 'method' | 'path' | 'headers' | 'body'>,
  { request: { id, headers: outer, raw }, caller }: { request: FastifyRequest; caller: AuthenticatedCaller },
): InjectOptions {
  return {
    method,
    url: path,
    headers: {
      ...headersFrom(outer),
      ...currentTrace(),
      ...(method === 'POST' && { 'content-type': 'application/json' }),
      ...headers,
      authorization: `Bearer ${caller.credentials.token}`,
      'x-request-id': id,
    },
    ...(method !== 'GET' && body.length > 0 && { payload: body }),
    remoteAddress: raw.socket.remoteAddress ?? '',
    payloadAsStream: true,
    // The library would check the types of these options.
    validate: false,
  }
}

/** The inner requests of one outer request that are in progress. */
interface Pending {
  leaves: Set<(reason: unknown) => void>
  hasLeft: boolean
}

/** Sends the inner requests of one outer request. */
export interface RequestSender {
  /**
   * Opens a claim of memory for one answer. Answers that are read one after the other share the claim of the outer
   * response, and each further one that is read at the same time has a separate claim.
   */
  openClaim: () => Pick<AnswerClaim, 'reserve'> & Disposable
  /** @throws ParleyError Unavailable if the response is cut before it begins; the reason of the signal */
  send(inner: InnerRequest): Promise<InnerResponse>
}

/** The error for a response that ended too early. The request may have had its effect. */
function cutOff(cause?: unknown): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'The agent closed the connection and may have received the request',
    data: { reason: 'agent_broke_off' },
    headers: { 'retry-after': '2' },
    cause,
  })
}

const clientHasLeft = () => new ClientDisconnected('the client has disconnected')

/** The error for an agent that does not answer in time. The message may have had its effect. */
export const agentIsSlow = () =>
  new ParleyError('Unavailable', {
    message:
      'The agent does not answer and may have received the message: look for its task before you repeat it',
    data: { reason: 'agent_slow' },
    headers: { 'retry-after': '2' },
  })

function headersFrom(outer: IncomingHttpHeaders): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const name of passed) {
    const value = outer[name]
    if (typeof value === 'string') headers[name] = value
  }
  // The library would name itself.
  headers['user-agent'] ??= ''
  return headers
}
