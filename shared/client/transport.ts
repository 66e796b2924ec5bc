import { randomUUID } from 'node:crypto'
import { boundedText } from '@parley/kit/net/bounded-text'
import { ConnectionError, RpcError } from './rpc-error.ts'

export interface ClientOptions {
  /** Base address of an agent or of the gateway, with or without the slash at the end. */
  url: string
  /** Bearer token, or how to come by one; asked before every request. */
  token?: string | (() => string | Promise<string>)
  headers?: Record<string, string>
  /** Sends the requests; a `signedFetch` brings token and signature along. Default: `fetch`. */
  fetch?: (url: string, init: OutgoingRequest) => Promise<Response>
  /** Longest wait for an ordinary answer. Default 60,000. */
  requestTimeoutMs?: number
  /** Largest ordinary answer. Default 256 MiB. */
  responseMaxBytes?: number
}

/** What is handed to `fetch`. */
export interface OutgoingRequest {
  method: 'POST'
  redirect: 'manual'
  headers: Record<string, string>
  body: string
  signal?: AbortSignal
}

export interface CallOptions {
  headers?: Record<string, string>
  signal?: AbortSignal
}

export interface Reply {
  result: unknown
  status: number
  headers: Headers
}

/** One POST with a JSON-RPC body, and what came of it. */
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
   * The answer as a stream of bytes; an answer that is no event stream is read as an error.
   * @throws RpcError, ConnectionError, or the signal's reason
   */
  async openStream(
    method: string,
    params: unknown,
    options: CallOptions,
  ): Promise<ReadableStream<Uint8Array>> {
    // The deadline is for the first byte alone: a stream may last for days.
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
      throw this.#lost(thrown, options.signal)
    }
  }

  async #reply(response: Response, id: string, signal: AbortSignal | undefined): Promise<Reply> {
    const { status, headers } = response
    let text: string
    try {
      text = await boundedText(response.body, this.#options.responseMaxBytes ?? 256 * 1024 * 1024)
    } catch (thrown) {
      throw this.#lost(thrown, signal)
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
      })
    }
    return { result: envelope.result, status, headers }
  }

  /** The caller's own abort stays what it is; anything else is a lost connection. */
  #lost(thrown: unknown, signal: AbortSignal | undefined): unknown {
    const own = signal?.aborted === true && (signal.reason as Error)?.name !== 'TimeoutError'
    return own ? signal.reason : new ConnectionError(this.url, thrown)
  }
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
    const { error } = parsed
    if (error === undefined) return parsed
    if (!isObject(error) || typeof error.code !== 'number' || typeof error.message !== 'string')
      return undefined
    return parsed as Envelope
  } catch {
    return undefined
  }
}

/** The one error without an envelope: x402's body, whose `error` is a code. */
function paymentText(text: string): string {
  const code = /"error"\s*:\s*"(\w{1,100})"/.exec(text)?.[1]
  return `Payment required${code === undefined || code === 'payment_required' ? '' : `: ${code}`}`
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
