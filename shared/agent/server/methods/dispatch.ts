import { createHash } from 'node:crypto'

import { PaymentRequired } from '@parley/engine/payments/payment-refused'
import { type Authenticator, requireScope } from '@parley/kit/auth/authenticate'
import type { Caller } from '@parley/kit/auth/caller'
import { authenticateCall, type CallBytes, type CallProgress, readCall } from '@parley/kit/http/rpc-call'
import type { AnswerBudget, AnswerClaim } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import { logFailure } from '@parley/kit/process/log-failure'
import type { Codec, FrameWriter } from '@parley/wire/codecs/codec'
import { dialectOf } from '@parley/wire/codecs/dialects'
import { type LazyJson, toLazyJson } from '@parley/wire/codecs/lazy-part'
import { ParleyError } from '@parley/wire/errors'
import { errorEnvelope, type RpcRequest, resultEnvelope } from '@parley/wire/jsonrpc/envelope'
import type { Calls } from '@parley/wire/model/call'
import { deprecationHeader } from '@parley/wire/model/deprecation'
import type { StreamItem } from '@parley/wire/model/event'
import { type Operation, operations } from '@parley/wire/model/operation'
import type { Call, Method, Services } from './method.ts'
import { methods } from './table.ts'

/** A JSON-RPC request as it came in. */
export interface Incoming extends CallBytes {
  /** The path of the request, one of `rpcPaths()`. */
  path: string
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
  operation: Operation | undefined
  /** Who called, where the token said it. */
  caller: string | undefined
  /** Absent: the call was answered. */
  error?: ParleyError
  /** The memory that the answer holds; to be disposed once it has been read or its client has left. */
  claim?: AnswerClaim
} & ({ body: string } | { json: LazyJson } | { items: AsyncIterable<StreamItem>; writer: FrameWriter })

/** What is known of a request so far. */
interface Seen extends CallProgress {
  codec: Codec
  method: string | undefined
  operation: Operation | undefined
  claim?: AnswerClaim
  /** Headers of every answer from here on. */
  headers?: Record<string, string>
}

/** A call that may run. */
interface Accepted {
  incoming: Incoming
  request: RpcRequest
  caller: Caller
  claim: AnswerClaim
  seen: Seen
}

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
    const seen: Seen = {
      id: null,
      codec: dialectOf(incoming),
      method: undefined,
      operation: undefined,
      caller: undefined,
    }
    try {
      return await this.#answer(incoming, seen)
    } catch (thrown) {
      seen.claim?.[Symbol.dispose]()
      if (thrown instanceof PaymentRequired) return { ...withoutId(seen), ...answerOf(thrown) }
      const error = ParleyError.from(thrown)
      if (error.status >= 500) logFailure(incoming.log(), error, { method: seen.method })
      const { id, codec, method, operation, caller } = seen
      const headers = { ...seen.headers, ...error.headers }
      const { status, ...written } = codec.writeError(error)
      return { status, headers, method, operation, caller, error, body: errorEnvelope(id, written) }
    }
  }

  /** The caller first, then the body, then the scope (spec/authentication.md#order-of-checks). */
  async #answer(incoming: Incoming, seen: Seen): Promise<Reply> {
    const caller = await authenticateCall(this.#authenticator, incoming, seen)
    const claim = this.#answers.open(caller.id)
    seen.claim = claim
    const request = readCall(incoming, seen)
    const codec = dialectOf({ path: incoming.path, headers: incoming.headers, method: request.method })
    seen.codec = codec
    const operation = codec.methods.get(request.method)?.operation
    if (operation === undefined) throw new ParleyError('MethodNotFound')
    seen.method = request.method
    seen.operation = operation
    seen.headers = { ...deprecationHeader(codec.deprecations(request.method, request.params)) }
    requireScope(caller, operations[operation].scope)
    this.#requireService(operation)
    return this.#run(operation, { incoming, request, caller, claim, seen })
  }

  /** Runs the operation and writes its answer in the dialect of the caller. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- links the params, the method and the result of one operation
  async #run<O extends Operation>(
    operation: O,
    { incoming, request, caller, claim, seen }: Accepted,
  ): Promise<Reply> {
    const { codec } = seen
    const method: Method<O> = methods[operation]
    const takeSignature = once(() => this.#authenticator.takeOnce(caller))
    const writes = operations[operation].scope === 'agent:write'
    // The answer to a message holds the message. After the first write it is too late to refuse.
    if (writes) claim.reserve(incoming.bytes.byteLength)
    if (writes && method.takesSignature === undefined) await takeSignature()
    const call: Call<Calls[O]['params']> = {
      caller,
      params: () => codec.readParams(operation, request.params),
      headers: incoming.headers,
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
    }
    const answer = await method.run(this.#services, call)
    // No answer goes out without it, whichever way the method took.
    if (writes) await takeSignature()
    const headers = { ...seen.headers, ...answer.headers }
    const reply = { status: 200, headers, method: request.method, operation, caller: caller.id, claim }
    if ('items' in answer) {
      // From here on each frame is counted.
      claim.shrink(0)
      return { ...reply, items: answer.items, writer: codec.openStream(request.id) }
    }
    const result = codec.writeResult(operation, answer.result)
    const json = toLazyJson(result, codec.writePart, (text) => resultEnvelope(request.id, text))
    if (writes) claim.tryReserve(json.bytes)
    else claim.reserve(json.bytes)
    claim.shrink(json.bytes)
    return json.parts.length === 0 ? { ...reply, body: json.texts.join('') } : { ...reply, json }
  }

  #requireService(operation: Operation): void {
    if (!this.#draining || operations[operation].scope === 'agent:read') return
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

const withoutId = ({ method, operation, caller }: Seen) => ({ method, operation, caller })

/** Its body is x402's and not the envelope. */
const answerOf = ({ status, headers, body }: PaymentRequired) => ({ status, headers, body })
