import { createHash } from 'node:crypto'

import { PaymentRequired } from '@parley/engine/payments/x402/payment-refused'
import type { Authenticator } from '@parley/kit/auth/authenticate'
import type { Caller } from '@parley/kit/auth/caller'
import { type RestCall, readRest, requireSignedTarget, restType } from '@parley/kit/http/rest-call'
import {
  authenticateCall,
  type CallBytes,
  type CallProgress,
  readCall,
  requireOperation,
} from '@parley/kit/http/rpc-call'
import type { AnswerBudget, AnswerClaim } from '@parley/kit/process/answer-budget'
import type { Log } from '@parley/kit/process/log'
import { logFailure } from '@parley/kit/process/log-failure'
import type { Codec, FrameWriter, WireRequest } from '@parley/wire/codecs/codec'
import { dialectOf, methodNotFound, partsOf } from '@parley/wire/codecs/dialects'
import { writeErrorAnswer, writeRestErrorAnswer } from '@parley/wire/codecs/error-answer'
import { type LazyJson, toLazyJson } from '@parley/wire/codecs/lazy-part'
import { ParleyError } from '@parley/wire/errors'
import { type RequestId, type RpcRequest, resultEnvelopeParts } from '@parley/wire/jsonrpc/envelope'
import { deprecationHeader } from '@parley/wire/model/deprecation'
import type { StreamItem } from '@parley/wire/model/event'
import { idsOf } from '@parley/wire/model/ids'
import { type Calls, type Operation, operations } from '@parley/wire/model/operation'
import { extensionUrisOf } from './agent-card.ts'
import type { Call, Method, Services } from './method.ts'
import { methods } from './table.ts'

/** A request as received. */
export interface Incoming extends CallBytes {
  /** The path of the request; for a JSON-RPC request, one of `rpcPaths()`. */
  path: string
  /** Set for a request whose HTTP method and path select the operation; absent for JSON-RPC. */
  rest?: RestCall
  /** The address that the caller used, derived from the address of the agent. */
  reachedAt: (baseUrl: string) => string
  /** Aborted when the caller disconnects. It is created on demand, because most calls end before it is needed. */
  signal: () => AbortSignal
  log: () => Log
}

export type Reply = {
  status: number
  headers: Record<string, string>
  method: string | undefined
  operation: Operation | undefined
  /** The token's client ID; undefined if authentication failed. */
  caller: string | undefined
  /** Absent if the call succeeded. */
  error?: ParleyError
  /** Memory reserved for the answer. The reader disposes it once the answer is sent or the client has disconnected. */
  claim?: AnswerClaim
  /** The media type of a body or of JSON. Default: JSON. */
  type?: string
} & ({ body: string } | { json: LazyJson } | { items: AsyncIterable<StreamItem>; writer: FrameWriter })

/** The fields that every reply has, even an error reply. The checks fill them in. */
interface ReplyHead extends CallProgress {
  codec: Codec
  method: string | undefined
  operation: Operation | undefined
  claim?: AnswerClaim
  headers?: Record<string, string>
}

/** A request that passed every check. */
interface CheckedRequest {
  incoming: Incoming
  request: RpcRequest
  codec: Codec
  caller: Caller
  claim: AnswerClaim
  headers: Record<string, string>
}

/** Checks a request, runs its method and builds the reply. It catches every error, so `dispatch` never rejects. */
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

  /** Refuses new work from now on. Tasks can still be read. */
  drain(): void {
    this.#draining = true
  }

  get draining(): boolean {
    return this.#draining
  }

  async dispatch(incoming: Incoming): Promise<Reply> {
    const head: ReplyHead = {
      id: null,
      codec: incoming.rest?.codec ?? dialectOf(wireOf(incoming)),
      method: undefined,
      operation: undefined,
      caller: undefined,
    }
    try {
      return await this.#answer(incoming, head)
    } catch (thrown) {
      head.claim?.[Symbol.dispose]()
      const { id, method, operation, caller } = head
      if (thrown instanceof PaymentRequired) {
        // x402 defines the body, which has no JSON-RPC envelope.
        const { status, headers, body } = thrown
        return { status, headers, method, operation, caller, body }
      }
      const error = ParleyError.from(thrown)
      if (error.status >= 500) logFailure(incoming.log(), error, { method })
      const headers = { ...head.headers, ...error.headers }
      const answer =
        incoming.rest === undefined
          ? writeErrorAnswer(dialectOf(wireOf(incoming, head.namedMethod)), error, { id, operation })
          : writeRestErrorAnswer(incoming.rest.binding, error)
      return { ...answer, headers, method, operation, caller, error }
    }
  }

  /** Runs the checks in the specified order (spec/authentication.md#order-of-checks), then the method. */
  async #answer(incoming: Incoming, head: ReplyHead): Promise<Reply> {
    const caller = await authenticateCall(this.#authenticator, incoming, head)
    const claim = this.#openClaim(caller, head)
    const { rest } = incoming
    const request = rest === undefined ? readCall(incoming, head, head.codec) : readRest(incoming.bytes, rest)
    const { codec, operation, headers } = operationOf(incoming, request, head)
    requireOperation(caller, operation)
    if (rest !== undefined) requireSignedTarget(caller, operation, rest)
    this.#requireNotDraining(operation)
    return this.#run(operation, { incoming, request, codec, caller, claim, headers })
  }

  #openClaim({ id }: Caller, head: ReplyHead): AnswerClaim {
    const claim = this.#answers.open(id)
    head.claim = claim
    return claim
  }

  /** Runs the operation and writes its answer in the caller's dialect. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- links the params, the method and the result of one operation
  async #run<O extends Operation>(
    operation: O,
    { incoming, request, codec, caller, claim, headers: common }: CheckedRequest,
  ): Promise<Reply> {
    const method: Method<O> = methods[operation]
    const takeSignature = once(() => this.#authenticator.takeOnce(caller))
    const writes = operations[operation].scope === 'agent:write'
    const extensions = this.#activated(codec.readExtensions(incoming.headers))
    // The answer contains the message, so its memory is reserved before the first write, when the call can still be refused.
    if (writes) claim.reserve(incoming.bytes.byteLength)
    if (writes && method.takesSignature === undefined) await takeSignature()
    const call: Call<Calls[O]['params']> = {
      caller,
      params: () => codec.readParams(operation, request.params, idsOf(caller.id)),
      headers: incoming.headers,
      extensions,
      baseUrl: () => incoming.reachedAt(this.#services.baseUrl()),
      bodyHash: () => hashOf(request),
      takeSignature,
      reserve: (atLeast) => claim.reserve(atLeast),
      openClaim: () => this.#answers.open(caller.id),
      signal: incoming.signal,
      log: incoming.log,
    }
    const answer = await method.run(this.#services, call)
    // The signature of a write is marked as used before it is answered, whichever path the method took.
    if (writes) await takeSignature()
    const headers = { ...common, ...answer.headers }
    const { rest } = incoming
    Object.assign(headers, codec.writeExtensions(extensions))
    const type = rest && { type: restType(incoming.headers, rest.binding) }
    const reply = {
      status: 200,
      headers,
      ...type,
      method: request.method,
      operation,
      caller: caller.id,
      claim,
    }
    if ('items' in answer) {
      // The stream reserves memory for each frame.
      claim.shrink(0)
      return {
        ...reply,
        items: answer.items,
        writer: rest?.binding.openStream() ?? codec.openStream(request.id),
      }
    }
    const written = writeResult(codec, operation, answer.result)
    Object.assign(headers, written.headers)
    const json = rest === undefined ? enveloped(written.json, request.id) : written.json
    if (writes) claim.tryReserve(json.bytes)
    else claim.reserve(json.bytes)
    claim.shrink(json.bytes)
    return json.parts.length === 0 ? { ...reply, body: json.texts.join('') } : { ...reply, json }
  }

  #activated(uris: readonly string[]): readonly string[] {
    if (uris.length === 0) return uris
    const { agent, did } = this.#services
    const listed = extensionUrisOf(agent, did)
    return uris.filter((uri) => listed.includes(uri))
  }

  #requireNotDraining(operation: Operation): void {
    if (!this.#draining || operations[operation].scope === 'agent:read') return
    throw new ParleyError('Unavailable', {
      message: 'The agent is stopping',
      data: { reason: 'draining' },
      headers: { 'retry-after': '5' },
    })
  }
}

/** A result as JSON without its envelope, and the headers that belong to it. */
interface WrittenResult {
  json: LazyJson
  headers: Record<string, string> | undefined
}

interface FrozenResult extends WrittenResult {
  codec: Codec
  operation: Operation
}

/** The JSON of frozen results. They never change, and clients that poll read the same ended task repeatedly. */
const frozenResults = new WeakMap<object, FrozenResult>()

function writeResult<O extends Operation>(
  codec: Codec,
  operation: O,
  result: Calls[O]['result'],
): WrittenResult {
  const isFrozen = typeof result === 'object' && result !== null && Object.isFrozen(result)
  const known = isFrozen ? frozenResults.get(result) : undefined
  if (known?.codec === codec && known.operation === operation) return known
  const written = codec.writeResult(operation, result)
  const json = toLazyJson(written.json, codec.writePart)
  const { headers } = written
  if (isFrozen && json.parts.length === 0) frozenResults.set(result, { json, headers, codec, operation })
  return { json, headers }
}

/** Adds the JSON-RPC envelope to a result. */
function enveloped(json: LazyJson, id: RequestId): LazyJson {
  const texts = [...json.texts]
  const [before, after] = resultEnvelopeParts(id)
  texts[0] = before + (texts[0] ?? '')
  texts.push((texts.pop() ?? '') + after)
  return { ...json, texts, bytes: json.bytes + before.length + after.length }
}

function once(step: () => Promise<void>): () => Promise<void> {
  let done: Promise<void> | undefined
  return () => (done ??= step())
}

/** @param method undefined until the body has been read */
function wireOf({ path, url, headers }: Incoming, method?: string): WireRequest {
  const request = { path, query: partsOf(url).query, headers }
  return method === undefined ? request : { ...request, method }
}

/** @throws ParleyError MethodNotFound, VersionNotSupported, ExtensionSupportRequired */
function operationOf(incoming: Incoming, { method, params }: RpcRequest, head: ReplyHead) {
  const { rest } = incoming
  const request = wireOf(incoming, method)
  const codec = rest?.codec ?? dialectOf(request)
  head.codec = codec
  const operation = rest?.route.operation ?? codec.methods.get(method)?.operation
  if (operation === undefined) throw methodNotFound(method, codec)
  head.method = method
  head.operation = operation
  const headers = { ...deprecationHeader(codec.deprecations(method, params)), ...codec.negotiate(request) }
  head.headers = headers
  return { codec, operation, headers }
}

/** Hashes the method and the params. The envelope's ID is left out, because a client may change it when it repeats a call. */
function hashOf({ method, params }: RpcRequest): string {
  return createHash('sha256')
    .update(JSON.stringify([method, params]))
    .digest('base64url')
}
