import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import type { AuthenticatedCaller } from '@parley/kit/auth/authenticate'
import type { InnerCall, InnerCalls } from '@parley/kit/auth/inner-calls'
import type { AnswerBudget, AnswerClaim } from '@parley/kit/process/answer-budget'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyInstance, FastifyRequest } from 'fastify'
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
  method?: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  body: string
  signal: AbortSignal | undefined
}

export interface InnerResponse extends Disposable {
  status: number
  headers: OutgoingHttpHeaders
  /** Fails if the response is cut. */
  body: Readable
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
    const left = new AbortController()
    const closed = () => {
      claim[Symbol.dispose]()
      if (!response.writableFinished) left.abort(new ClientDisconnected('the client has disconnected'))
    }
    if (response.destroyed || response.closed) closed()
    else response.once('close', closed)
    return {
      claim,
      send: (inner) => this.#send({ ...inner, signal: eitherOf(left.signal, inner.signal) }, request, caller),
    }
  }

  async #send(
    { method = 'POST', path, headers, body, signal }: InnerRequest & { signal: AbortSignal },
    { id, headers: outer, raw }: FastifyRequest,
    caller: AuthenticatedCaller,
  ): Promise<InnerResponse> {
    signal.throwIfAborted()
    const call: InnerCall = { caller }
    const leave = () => void call.response?.destroy()
    signal.addEventListener('abort', leave, { once: true })
    try {
      const { remoteAddress = '' } = raw.socket
      const sent = {
        method,
        url: path,
        headers: {
          ...headersFrom(outer),
          ...headers,
          ...(method === 'POST' && { 'content-type': 'application/json' }),
          authorization: `Bearer ${caller.credentials.token}`,
          'x-request-id': id,
        },
        ...(method === 'POST' && { payload: body }),
        remoteAddress,
        payloadAsStream: true,
      }
      // The request begins when the result of `inject` is awaited, which must be within the context.
      const answer = await this.#inner.run(call, async () => await this.#app.inject(sent))
      const stream = answer.stream()
      return {
        status: answer.statusCode,
        headers: answer.headers,
        body: stream,
        [Symbol.dispose]: () => {
          signal.removeEventListener('abort', leave)
          if (!stream.readableEnded) leave()
        },
      }
    } catch (error) {
      signal.removeEventListener('abort', leave)
      signal.throwIfAborted()
      throw error instanceof ParleyError ? error : cutOff(error)
    }
  }
}

/** Sends the inner requests of one outer request. */
export interface RequestSender {
  /** The memory for the answers of the inner requests, which the outer response releases. */
  claim: AnswerClaim
  /** @throws ParleyError Unavailable if the response is cut before it begins; the reason of the signal */
  send(inner: InnerRequest): Promise<InnerResponse>
}

/** The error for a response that ended too early. The request may have had its effect. */
export function cutOff(cause?: unknown): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'The agent closed the connection and may have received the request',
    data: { reason: 'agent_broke_off' },
    headers: { 'retry-after': '2' },
    cause,
  })
}

function eitherOf(one: AbortSignal, other: AbortSignal | undefined): AbortSignal {
  return other === undefined ? one : AbortSignal.any([one, other])
}

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
