import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'
import { PaymentRequired } from '@parley/engine/payments/payment-refused'
import { type Authenticator, requireScope } from '@parley/kit/auth/authenticate'
import type { AnswerBudget, AnswerClaim } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import { logFailure } from '@parley/kit/process/log-failure'
import { type LazyJson, toLazyJson } from '@parley/wire/codecs/parley/lazy-part'
import { ParleyError } from '@parley/wire/errors'
import {
  errorEnvelope,
  type RequestId,
  type RpcRequest,
  readId,
  readRequest,
  resultEnvelope,
} from '@parley/wire/jsonrpc/envelope'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import { deprecatedFields, deprecationHeader } from '@parley/wire/model/deprecation'
import type { Frame, Method, Services } from './method.ts'
import { methods } from './table.ts'

/** A JSON-RPC request as it came in. */
export interface Incoming {
  bytes: Buffer
  headers: IncomingHttpHeaders
  /** The method that the path names (`POST /tasks/get`); undefined for `POST /`. */
  pathMethod: string | undefined
  /** The address that the caller used, given the agent's own. */
  reachedAt: (baseUrl: string) => string
  /** Made when a method asks for it: most calls end before their caller could leave. */
  signal: () => AbortSignal
  log: () => Log
}

export type Reply = {
  status: number
  headers: Record<string, string>
  method: string | undefined
  /** Who called, where the token said it. */
  caller: string | undefined
  /** Absent: the call was answered. */
  error?: ParleyError
  /** The memory that the answer holds; to be disposed once it has been read or its client has left. */
  claim?: AnswerClaim
} & ({ body: string } | { json: LazyJson } | { frames: AsyncIterable<Frame> })

/** What is known of a request so far. */
interface Seen {
  id: RequestId
  method: string | undefined
  caller: string | undefined
  claim?: AnswerClaim
  /** Headers of every answer from here on. */
  headers?: Record<string, string>
}

/** Bodies up to this size are read for their id when the caller is refused before the body was looked at. */
const idFromRefusedMaxBytes = 64 * 1024

/** Bytes → caller → method → reply. The only place that catches (house rules); never rejects. */
export class Dispatcher {
  readonly #services: Services
  readonly #authenticator: Authenticator
  readonly #answers: AnswerBudget
  #draining = false

  constructor(services: Services, authenticator: Authenticator, answers: AnswerBudget) {
    this.#services = services
    this.#authenticator = authenticator
    this.#answers = answers
  }

  /** From now on new work is refused; tasks can still be read. */
  drain(): void {
    this.#draining = true
  }

  get draining(): boolean {
    return this.#draining
  }

  async dispatch(incoming: Incoming): Promise<Reply> {
    const seen: Seen = { id: null, method: undefined, caller: undefined }
    try {
      return await this.#answer(incoming, seen)
    } catch (thrown) {
      seen.claim?.[Symbol.dispose]()
      if (thrown instanceof PaymentRequired) return { ...withoutId(seen), ...answerOf(thrown) }
      const error = ParleyError.from(thrown)
      if (error.status >= 500) logFailure(incoming.log(), error, { method: seen.method })
      const { id, method, caller } = seen
      const headers = { ...seen.headers, ...error.headers }
      return { status: error.status, headers, method, caller, error, body: errorEnvelope(id, error) }
    }
  }

  /** The caller first, then the body, then the scope (spec/authentication.md#order-of-checks). */
  async #answer(incoming: Incoming, seen: Seen): Promise<Reply> {
    const { bytes, headers: sent } = incoming
    const caller = await this.#authenticator.authenticate(sent, bytes).catch((refusal: unknown) => {
      seen.id = idOfRefused(bytes)
      throw refusal
    })
    seen.caller = caller.id
    const claim = this.#answers.open(caller.id)
    seen.claim = claim
    const body = parseJson(bytes)
    seen.id = readId(body)
    const request = readRequest(body)
    if (incoming.pathMethod !== undefined && incoming.pathMethod !== request.method) {
      throw new ParleyError('InvalidRequest', { message: 'method differs from the path' })
    }
    const method = methods.get(request.method)
    if (method === undefined) throw new ParleyError('MethodNotFound')
    seen.method = request.method
    seen.headers = deprecationOf(method, request.params)
    requireScope(caller, method.scope)
    this.#requireService(method)
    const takeSignature = once(() => this.#authenticator.takeOnce(caller))
    const writes = method.scope === 'agent:write'
    // The answer to a message holds the message. After the first write it is too late to refuse.
    if (writes) claim.reserve(bytes.byteLength)
    if (writes && method.takesSignature === undefined) await takeSignature()
    const answer = await method.run(this.#services, {
      caller,
      params: request.params,
      headers: sent,
      baseUrl: () => incoming.reachedAt(this.#services.baseUrl()),
      bodyHash: () => hashOf(request),
      takeSignature,
      reserve: (atLeast) => claim.reserve(atLeast),
      openClaim: () => this.#answers.open(caller.id),
      get signal() {
        return incoming.signal()
      },
      get log() {
        return incoming.log()
      },
    })
    // Nobody is answered without it, whatever way a method took.
    if (writes) await takeSignature()
    const headers = { ...seen.headers, ...answer.headers }
    const reply = { status: 200, headers, method: request.method, caller: caller.id, claim }
    if ('frames' in answer) {
      // From here on each frame is counted.
      claim.shrink(0)
      return { ...reply, frames: answer.frames }
    }
    const json = toLazyJson(answer.result, (result) => resultEnvelope(request.id, result))
    if (writes) claim.tryReserve(json.bytes)
    else claim.reserve(json.bytes)
    claim.shrink(json.bytes)
    return json.parts.length === 0 ? { ...reply, body: json.texts.join('') } : { ...reply, json }
  }

  #requireService(method: Method): void {
    if (!this.#draining || method.scope === 'agent:read') return
    throw new ParleyError('Unavailable', {
      message: 'The agent is stopping',
      data: { reason: 'draining' },
      headers: { 'retry-after': '5' },
    })
  }
}

function once(step: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => (done ??= step())
}

/** What is asked, without the envelope's id: a client that repeats a call numbers it anew. */
function hashOf({ method, params }: RpcRequest): string {
  return createHash('sha256')
    .update(JSON.stringify([method, params]))
    .digest('base64url')
}

const withoutId = ({ method, caller }: Seen) => ({ method, caller })

/** Its body is x402's and not the envelope. */
const answerOf = ({ status, headers, body }: PaymentRequired) => ({ status, headers, body })

function idOfRefused(bytes: Buffer): RequestId {
  if (bytes.byteLength > idFromRefusedMaxBytes) return null
  try {
    return readId(parseJson(bytes))
  } catch {
    return null
  }
}

/** The `Deprecation` header, where the tables mark the method or a field of the call. */
function deprecationOf(
  { deprecated, deprecatedParams }: Method,
  params: Record<string, unknown>,
): Record<string, string> {
  if (deprecated === undefined && deprecatedParams === undefined) return {}
  const fields = deprecatedFields(deprecatedParams ?? {}, params)
  return { ...deprecationHeader(deprecated === undefined ? fields : [deprecated, ...fields]) }
}
