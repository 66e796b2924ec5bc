import { randomUUID } from 'node:crypto'
import { boundedText } from '@parley/kit/net/bounded-text'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import { ConnectionError, RpcError } from './rpc-error.ts'

export interface ClientOptions {
  /** The base address of an agent or of the gateway, with or without a trailing slash. */
  url: string
  /** A bearer token, or a function that returns one before each request. */
  token?: string | (() => string | Promise<string>)
  headers?: Record<string, string>
  /** Sends the requests; `signedFetch` adds the token and the signature. Default: `fetch`. */
  fetch?: (url: string, init: OutgoingRequest) => Promise<Response>
  /** The deadline for a response or for the first byte of a stream. Default 60,000. */
  requestTimeoutMs?: number
  /** The maximum size of a response other than a stream. Default 268,435,456 (256 MiB). */
  responseMaxBytes?: number
}

/** The request that is passed to `fetch`. */
export interface OutgoingRequest {
  method: 'POST'
  redirect: 'manual'
  headers: Record<string, string>
  body: string
  signal?: AbortSignal
}

/** Options of one call. */
export interface CallOptions {
  /** Headers that are added to the request, for example `idempotency-key`. */
  headers?: Record<string, string>
  /** Aborts the call, which then throws the signal's reason. */
  signal?: AbortSignal
}

/** The result of a call and its HTTP response. */
export interface Reply {
  result: unknown
  status: number
  headers: Headers
}

/** Sends JSON-RPC requests by HTTP POST. */
export class Transport {
  readonly url: string
  readonly #options: ClientOptions

  constructor(options: ClientOptions) {
    this.url = options.url.endsWith('/') ? options.url : `${options.url}/`
    this.#options = options
  }

  /** @throws RpcError, ConnectionError, or the signal's reason */
  async request(method: string, params: unknown, options: CallOptions = {}): Promise<Reply> {
    const timeout = AbortSignal.timeout(this.#options.requestTimeoutMs ?? 60_000)
    const signal = options.signal === undefined ? timeout : AbortSignal.any([options.signal, timeout])
    const { response, id } = await this.#post(method, params, { ...options, signal })
    return this.#reply(response, id, options.signal)
  }

  /**
   * Returns the body of an event stream; any other response is read as an error.
   * @throws RpcError, ConnectionError, or the signal's reason
   */
  async openStream(
    method: string,
    params: unknown,
    options: CallOptions,
  ): Promise<ReadableStream<Uint8Array>> {
    // The deadline applies only to the first byte, because a stream may last for days.
    const deadline = new AbortController()
    const timer = setTimeout(
      () => deadline.abort(new DOMException('no answer in time', 'TimeoutError')),
      this.#options.requestTimeoutMs ?? 60_000,
    )
    const signals = options.signal === undefined ? [] : [options.signal]
    const { response, id } = await this.#post(method, params, {
      signal: AbortSignal.any([...signals, deadline.signal]),
      headers: { accept: 'text/event-stream, application/json', ...options.headers },
    }).finally(() => clearTimeout(timer))
    const type = response.headers.get('content-type') ?? ''
    if (response.ok && type.startsWith('text/event-stream') && response.body !== null) return response.body
    await this.#reply(response, id, options.signal)
    throw new RpcError({
      code: 0,
      status: response.status,
      message: `${method} was not answered with an event stream`,
      headers: response.headers,
    })
  }

  async #post(
    method: string,
    params: unknown,
    options: CallOptions,
  ): Promise<{ response: Response; id: string }> {
    const id = randomUUID()
    const { token } = this.#options
    const bearer = typeof token === 'function' ? await token() : token
    try {
      const response = await (this.#options.fetch ?? fetch)(this.url, {
        method: 'POST',
        redirect: 'manual',
        headers: {
          'content-type': 'application/json',
          ...(bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }),
          ...this.#options.headers,
          ...options.headers,
        },
        body: JSON.stringify({ jsonrpc: '2.0', id, method, params }),
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      })
      return { response, id }
    } catch (thrown) {
      throw this.#failureOf(thrown, options.signal)
    }
  }

  async #reply(response: Response, id: string, signal: AbortSignal | undefined): Promise<Reply> {
    const { status, headers } = response
    let text: string
    try {
      text = await boundedText(response.body, this.#options.responseMaxBytes ?? 256 * 1024 * 1024)
    } catch (thrown) {
      throw this.#failureOf(thrown, signal)
    }
    const envelope = envelopeOf(text)
    if (envelope?.error !== undefined) {
      const { code, message, data } = envelope.error
      throw new RpcError({ code, status, message, headers, ...(isObject(data) ? { data } : {}) })
    }
    if (envelope === undefined || !('result' in envelope) || envelope.id !== id) {
      throw new RpcError({
        code: 0,
        status,
        message: status === 402 ? paymentText(text) : `HTTP ${status} without a JSON-RPC answer`,
        headers,
        ...(status === 402 && { data: jsonObjectOf(text) ?? {} }),
      })
    }
    return { result: envelope.result, status, headers }
  }

  /** Returns the reason of the caller's signal if it aborted; any other failure becomes a ConnectionError. */
  #failureOf(thrown: unknown, signal: AbortSignal | undefined): unknown {
    if (signal?.aborted === true && !isTimeout(signal.reason)) return signal.reason
    return new ConnectionError(this.url, thrown)
  }
}

function isTimeout(reason: unknown): boolean {
  return reason instanceof Error && reason.name === 'TimeoutError'
}

interface Envelope {
  id?: unknown
  result?: unknown
  error?: { code: number; message: string; data?: unknown }
}

function envelopeOf(text: string): Envelope | undefined {
  try {
    const parsed: unknown = JSON.parse(text)
    if (!isObject(parsed)) return undefined
    const { error, ...rest } = parsed
    if (error === undefined) return rest
    if (!isObject(error)) return undefined
    const { code, message, data } = error
    if (typeof code !== 'number' || typeof message !== 'string') return undefined
    return { ...rest, error: { code, message, data } }
  } catch {
    return undefined
  }
}

/** x402 defines the body of a 402 response: it has no envelope, and its `error` is a code. */
function paymentText(text: string): string {
  const code = /"error"\s*:\s*"(\w{1,100})"/.exec(text)?.[1]
  return `Payment required${code === undefined || code === 'payment_required' ? '' : `: ${code}`}`
}
