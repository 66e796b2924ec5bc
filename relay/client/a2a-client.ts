import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { AgentCredential } from '@parley/kit/auth/agent-credential'
import type { AllowedHosts } from '@parley/kit/net/allowed-hosts'
import { BodyTooLarge, boundedText } from '@parley/kit/net/bounded-text'
import { OutgoingFailed, OutgoingRefused } from '@parley/kit/net/outgoing-errors'
import { type OutgoingUrl, outgoingUrl } from '@parley/kit/net/outgoing-url'
import { PinnedConnections } from '@parley/kit/net/pinned-connections'
import { type GuardedStream, guardedStream } from '@parley/kit/net/pinned-stream'
import { currentTrace, inSpan } from '@parley/kit/telemetry/tracing'
import type { ClientParams, Codec, ReadFrame } from '@parley/wire/codecs/codec'
import { versionHeaders } from '@parley/wire/codecs/dialects'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { SendMessage } from '@parley/wire/model/call'
import type { Task } from '@parley/wire/model/task'
import { AgentRefused, AgentUnreachable, credentialRefused, InvalidAgentAnswer } from './agent-errors.ts'
import { type Authorization, type CredentialSource, credentialSource } from './credentials.ts'
import { LargeAnswers } from './large-answers.ts'
import { type StreamLimits, sseFrames } from './sse-frames.ts'

export interface A2aClientOptions {
  /** The JSON-RPC interface that the agent's card names. */
  url: string
  /** The dialect of the interface. Agents of A2A 0.2 are called with the dialect of 0.3. */
  dialect: Codec
  /** Whether messages are sent by streaming calls. */
  streaming: boolean
  credential?: AgentCredential | undefined
  /** Exceptions to the private-address guard. */
  allowed: AllowedHosts
  /** CA certificates (PEM) that replace the default ones. */
  ca?: string
  limits?: Partial<ClientLimits>
}

export interface ClientLimits extends StreamLimits {
  /** The maximum size of an answer other than a stream. */
  answerMaxBytes: number
  /** The longest time until the answer to a message begins, because agents may answer when their task has ended. */
  sendTimeoutMs: number
  /** The longest time until any other answer begins. */
  requestTimeoutMs: number
  /** The longest time without data within an answer, including the heartbeats of a stream. */
  idleMs: number
  /** How long a stream may remain open after its last frame. Its connection is then closed and not reused. */
  restMs: number
  /** The delay before the first repetition of a request, which doubles each time. */
  repeatDelayMs: number
}

const defaults: ClientLimits = {
  answerMaxBytes: 64 * 1024 * 1024,
  frameMaxChars: 32 * 1024 * 1024,
  framesMax: 100_000,
  streamMaxBytes: 256 * 1024 * 1024,
  sendTimeoutMs: 600_000,
  requestTimeoutMs: 15_000,
  idleMs: 60_000,
  restMs: 1000,
  repeatDelayMs: 250,
}

/** The maximum size of the rest of an answer that is discarded so that the connection can be reused. */
const restMaxBytes = 64 * 1024
/**
 * How long a connection may have been idle before a message is sent over it. The server may be closing it, and a message that
 * it does not answer is not repeated. Servers keep idle connections open for a second or longer.
 */
const idleBeforeSendMs = 300
/** Attempts at one request, and the longest delay before a repetition. */
const [attemptsMax, repeatDelayMaxMs] = [4, 10_000]

type ClientOperation = keyof ClientParams

/**
 * Calls an A2A server that is not trusted. Everything that it sends is bounded and checked, redirects are refused, and a
 * request is repeated only if the agent has surely not processed it or processes it without further effect.
 *
 * Every call throws AgentUnreachable, AgentRefused or InvalidAgentAnswer, or the signal's reason.
 */
export class A2aClient implements AsyncDisposable {
  readonly #options: A2aClientOptions
  readonly #limits: ClientLimits
  readonly #connections: PinnedConnections
  readonly #credentials: CredentialSource
  readonly #large = new LargeAnswers()
  #target: { query: Authorization['query']; url: OutgoingUrl } | undefined
  #mayStream: boolean

  constructor(options: A2aClientOptions) {
    this.#options = options
    this.#limits = { ...defaults, ...options.limits }
    this.#mayStream = options.streaming
    // Servers close idle connections after 5 s by default. A request on a closing connection would be lost.
    this.#connections = new PinnedConnections({ perHostMax: 256, idleMs: 2000, ca: options.ca })
    const { allowed } = options
    this.#credentials = credentialSource(options.credential, { connections: this.#connections, allowed })
  }

  /**
   * Sends a message. Yields the frames of the answer's stream, or the task or message of an answer without a stream. An agent
   * that refuses streams although its card declares them receives the message again without one.
   */
  async *send(params: SendMessage, signal: AbortSignal): AsyncGenerator<ReadFrame> {
    if (this.#mayStream) {
      let hasBegun = false
      try {
        for await (const frame of this.#frames('streamMessage', params, signal)) {
          hasBegun = true
          yield frame
        }
        return
      } catch (error) {
        // An agent that has begun to answer has received the message.
        if (hasBegun || !isWithoutStreams(error)) throw error
      }
    }
    for await (const frame of this.#frames('sendMessage', params, signal)) {
      // The refusal was not about this message.
      this.#mayStream = false
      yield frame
    }
  }

  /** Follows a task by a stream. @throws AgentRefused when the agent cannot stream or the task has ended */
  async *follow(taskId: string, signal: AbortSignal): AsyncGenerator<ReadFrame> {
    yield* this.#frames('resubscribe', { taskId }, signal)
  }

  async get(taskId: string, signal: AbortSignal): Promise<Task> {
    return this.#task('getTask', { taskId }, taskId, signal)
  }

  async cancel(taskId: string, signal: AbortSignal): Promise<Task> {
    return this.#task('cancelTask', { taskId }, taskId, signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connections[Symbol.asyncDispose]()
  }

  async #task(
    operation: 'getTask' | 'cancelTask',
    params: { taskId: string },
    taskId: string,
    signal: AbortSignal,
  ): Promise<Task> {
    const { response, id } = await this.#open(operation, params, signal)
    await using _response = response
    const task = this.#options.dialect.readTask(await this.#result(response, id, signal))
    if (task === undefined) throw new InvalidAgentAnswer('The agent answered without a valid task')
    if (task.id !== taskId) throw new InvalidAgentAnswer('The agent answered with another task')
    return task
  }

  async *#frames<O extends 'sendMessage' | 'streamMessage' | 'resubscribe'>(
    operation: O,
    params: ClientParams[O],
    signal: AbortSignal,
  ): AsyncGenerator<ReadFrame> {
    const { dialect } = this.#options
    const { response, id } = await this.#open(operation, params, signal)
    await using _response = response
    if (!isEventStream(response)) {
      const answer = dialect.readSendResult(await this.#result(response, id, signal))
      if (answer === undefined)
        throw new InvalidAgentAnswer('The agent answered with neither a valid task nor a message')
      yield answer
      return
    }
    using bytes = this.#large.open(signal)
    try {
      for await (const data of sseFrames(bytes.of(response.body), this.#limits)) {
        if (data !== '') yield this.#frame(data, id)
        bytes.clear()
      }
    } catch (error) {
      throw this.#failureOf(error, true, signal)
    }
  }

  #frame(data: string, id: string): ReadFrame {
    const json = jsonOf(Buffer.from(data))
    if (isObject(json) && 'id' in json && json['jsonrpc'] !== undefined) checkId(json, id)
    const frame = this.#options.dialect.readFrame(json)
    if (frame === undefined) throw new InvalidAgentAnswer("A frame of the agent's stream is malformed")
    if (frame.kind === 'error') throw new AgentRefused(frame.error)
    return frame
  }

  /** Sends a request, and repeats it while that is safe. */
  async #open<O extends ClientOperation>(operation: O, params: ClientParams[O], signal: AbortSignal) {
    const isWrite = operation === 'sendMessage' || operation === 'streamMessage'
    let isAuthorizationRenewed = false
    for (let attempt = 1; ; attempt += 1) {
      const authorization = await this.#credentials.authorization(signal)
      try {
        const opened = await this.#attempt(operation, params, { authorization, signal })
        if (opened.response.status !== 401 || isAuthorizationRenewed) return opened
        if (!this.#credentials.refused(authorization)) return opened
        await opened.response[Symbol.asyncDispose]()
        isAuthorizationRenewed = true
      } catch (error) {
        const isSafe = error instanceof AgentUnreachable && (!isWrite || !error.received)
        if (!isSafe || attempt >= attemptsMax) throw error
        const delayMs = error.retryAfterMs ?? this.#limits.repeatDelayMs * 2 ** (attempt - 1)
        await wait(Math.min(delayMs, repeatDelayMaxMs), undefined, { signal }).catch(() => {})
        signal.throwIfAborted()
      }
    }
  }

  /** Makes each request a step of the trace. */
  #attempt<O extends ClientOperation>(
    operation: O,
    params: ClientParams[O],
    how: { authorization: Authorization; signal: AbortSignal },
  ): Promise<{ response: GuardedStream; id: string }> {
    if (currentTrace() === undefined) return this.#post(operation, params, how)
    const attributes = {
      'rpc.system.name': 'jsonrpc',
      'rpc.method': this.#options.dialect.methodOf(operation),
      'server.address': URL.parse(this.#options.url)?.hostname,
    }
    return inSpan('call foreign agent', { kind: 'client', attributes }, async (span) => {
      const answered = await this.#post(operation, params, how)
      span.set({ 'http.response.status_code': answered.response.status })
      return answered
    })
  }

  async #post<O extends ClientOperation>(
    operation: O,
    params: ClientParams[O],
    { authorization, signal }: { authorization: Authorization; signal: AbortSignal },
  ): Promise<{ response: GuardedStream; id: string }> {
    const { dialect, allowed } = this.#options
    const id = randomUUID()
    const method = dialect.methodOf(operation)
    let isSent = false
    const isStream = operation === 'streamMessage' || operation === 'resubscribe'
    const isSend = operation === 'streamMessage' || operation === 'sendMessage'
    try {
      const response = await guardedStream(this.#targetOf(authorization), {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: isStream ? 'text/event-stream, application/json' : 'application/json',
          ...versionHeaders(dialect),
          ...authorization.headers,
          ...currentTrace(),
        },
        body: JSON.stringify({ jsonrpc: '2.0', id, method, params: dialect.writeParams(operation, params) }),
        allowed,
        connections: this.#connections,
        signal,
        timeoutMs: isSend ? this.#limits.sendTimeoutMs : this.#limits.requestTimeoutMs,
        idleMs: this.#limits.idleMs,
        discarded: { maxBytes: restMaxBytes, maxMs: this.#limits.restMs },
        ...(isSend && { idleMaxMs: idleBeforeSendMs }),
        onSend: () => (isSent = true),
      })
      await refuseUnavailable(response)
      return { response, id }
    } catch (error) {
      throw this.#failureOf(error, isSent, signal)
    }
  }

  /** Returns the address of requests, which is checked once. @throws OutgoingRefused */
  #targetOf({ query }: Authorization): OutgoingUrl {
    const { url, allowed } = this.#options
    if (this.#target === undefined || this.#target.query !== query)
      this.#target = { query, url: outgoingUrl(urlWith(url, query), allowed) }
    return this.#target.url
  }

  /** Returns the result of a JSON-RPC answer. */
  async #result(response: GuardedStream, id: string, signal: AbortSignal): Promise<unknown> {
    const { status } = response
    if (status >= 300 && status < 400)
      throw new InvalidAgentAnswer(`The agent redirects requests (HTTP ${status}), which is refused`)
    let text: string
    using bytes = this.#large.open(signal)
    try {
      text = await boundedText(bytes.of(response.body), this.#limits.answerMaxBytes)
    } catch (error) {
      if (error instanceof BodyTooLarge) throw new InvalidAgentAnswer("The agent's answer is too large")
      throw this.#failureOf(error, true, signal)
    }
    const json = status === 200 ? jsonOf(Buffer.from(text)) : tryJson(text)
    const error = this.#options.dialect.readError(json)
    if (status === 401 || status === 403)
      throw credentialRefused(status, this.#options.credential !== undefined, error?.message)
    if (error !== undefined) throw new AgentRefused(error)
    if (status !== 200 || !isObject(json) || !('result' in json))
      throw new InvalidAgentAnswer(`The agent answered HTTP ${status} without a JSON-RPC result`, status)
    checkId(json, id)
    return json['result']
  }

  #failureOf(error: unknown, isSent: boolean, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted === true) return signal.reason
    if (error instanceof OutgoingRefused) return new InvalidAgentAnswer(error.message)
    if (!(error instanceof OutgoingFailed)) return error
    if (error.reason === 'encoding' || error.reason === 'too_large' || error.reason === 'protocol')
      return new InvalidAgentAnswer(error.message)
    const message =
      error.reason === 'timeout'
        ? 'The agent did not answer in time'
        : error.reason === 'connection' && !isSent
          ? 'The agent could not be reached'
          : error.message
    return new AgentUnreachable(message, { received: isSent, cause: error })
  }
}

/** Whether the agent refused a stream before it processed the message. */
function isWithoutStreams(error: unknown): boolean {
  if (error instanceof InvalidAgentAnswer) return [404, 405, 501].includes(error.status ?? 0)
  const isRefusal = error instanceof AgentRefused
  return isRefusal && (error.error === 'UnsupportedOperation' || error.error === 'MethodNotFound')
}

function isEventStream({ status, headers }: GuardedStream): boolean {
  return status === 200 && (headers['content-type'] ?? '').toLowerCase().startsWith('text/event-stream')
}

/** Answers of proxies and overloaded servers. Only 429 and 503 show that the request was not processed. */
async function refuseUnavailable(response: GuardedStream): Promise<void> {
  const { status, headers } = response
  if (![429, 502, 503, 504].includes(status)) return
  await response[Symbol.asyncDispose]()
  const seconds = Number(headers['retry-after'])
  throw new AgentUnreachable(`The agent is unavailable (HTTP ${status})`, {
    received: status === 502 || status === 504,
    ...(seconds > 0 && { retryAfterMs: seconds * 1000 }),
  })
}

/** A server that could not read the request answers with the ID null. */
function checkId(json: Record<string, unknown>, id: string): void {
  const isOfError = json['error'] !== undefined && json['id'] === null
  if (json['id'] !== id && !isOfError)
    throw new InvalidAgentAnswer('The agent answered with the ID of another request')
}

function urlWith(url: string, query: Authorization['query']): string {
  if (query === undefined) return url
  const parsed = new URL(url)
  parsed.searchParams.set(query.name, query.value)
  return parsed.href
}

/** @throws InvalidAgentAnswer */
function jsonOf(bytes: Uint8Array): unknown {
  try {
    return parseJson(bytes)
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error
    throw new InvalidAgentAnswer(`The agent's answer cannot be read: ${error.message}`)
  }
}

function tryJson(text: string): unknown {
  try {
    return parseJson(Buffer.from(text))
  } catch {
    return undefined
  }
}
