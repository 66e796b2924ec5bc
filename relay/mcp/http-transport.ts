import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { AgentCredential } from '@parley/kit/auth/agent-credential'
import type { AllowedHosts } from '@parley/kit/net/allowed-hosts'
import { OutgoingFailed, OutgoingRefused } from '@parley/kit/net/outgoing-errors'
import { outgoingUrl } from '@parley/kit/net/outgoing-url'
import { PinnedConnections } from '@parley/kit/net/pinned-connections'
import { type GuardedStream, guardedStream } from '@parley/kit/net/pinned-stream'
import type { Resolver } from '@parley/kit/net/resolve-public'
import { ParleyError } from '@parley/wire/errors'
import {
  AgentRefused,
  AgentUnreachable,
  credentialRefused,
  InvalidAgentAnswer,
} from '../client/agent-errors.ts'
import { type Authorization, type CredentialSource, credentialSource } from '../client/credentials.ts'
import { LargeAnswers } from '../client/large-answers.ts'
import { McpTransport } from './mcp-transport.ts'

export interface HttpServerOptions {
  /** The address of the MCP endpoint. */
  url: string
  credential?: AgentCredential | undefined
  /** Exceptions to the private-address guard. */
  allowed: AllowedHosts
  resolver?: Resolver | undefined
  /** CA certificates (PEM) that replace the default ones. */
  ca?: string | undefined
  /**
   * Whether a stream is open for messages that belong to no request, on which some servers of 2025 request input. By default, there is
   * none.
   */
  listens?: boolean
  /** The maximum size of one answer, which may be a stream. Default 64 MiB. */
  answerMaxBytes?: number
  /** The longest time without data in an answer, and until it begins. Default 10 minutes. */
  silenceMaxMs?: number
}

/** The server requires a credential or does not accept the one that it received. */
export class ServerRefusedCredential extends AgentRefused {
  /** The header WWW-Authenticate. */
  readonly challenge: string

  constructor(error: AgentRefused, challenge: string) {
    super(new ParleyError(error.error, { message: error.message }))
    this.challenge = challenge
  }
}

const [answerMaxBytes, silenceMaxMs] = [64 * 1024 * 1024, 600_000]

/**
 * The connections to an MCP server by Streamable HTTP. The server is not trusted: only its own address is called, private addresses and
 * redirects are refused, and the size of answers is limited.
 */
export class HttpServer implements AsyncDisposable {
  readonly #options: HttpServerOptions
  readonly #connections: PinnedConnections
  readonly #credentials: CredentialSource
  readonly #large = new LargeAnswers()
  readonly #url: URL

  /** @throws OutgoingRefused */
  constructor(options: HttpServerOptions) {
    this.#options = options
    const { allowed, ca, credential, url } = options
    this.#url = outgoingUrl(url, allowed).url
    this.#connections = new PinnedConnections({ perHostMax: 256, idleMs: 2000, ca })
    this.#credentials = credentialSource(credential, { connections: this.#connections, allowed })
  }

  /** Returns a transport for one session. */
  transport(): McpTransport {
    return new McpTransport((failed) => {
      const call = async (to: string | URL, init?: RequestInit) => {
        try {
          return await this.#fetch(to, init, failed)
        } catch (error) {
          failed(error)
          throw error
        }
      }
      return new StreamableHTTPClientTransport(this.#url, {
        fetch: call,
        reconnectionOptions: {
          initialReconnectionDelay: 500,
          maxReconnectionDelay: 10_000,
          reconnectionDelayGrowFactor: 2,
          maxRetries: 4,
        },
      })
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connections[Symbol.asyncDispose]()
  }

  async #fetch(
    to: string | URL,
    init: RequestInit = {},
    failed: (error: unknown) => void,
  ): Promise<Response> {
    const target = new URL(to)
    if (target.origin !== this.#url.origin || target.pathname !== this.#url.pathname)
      throw new InvalidAgentAnswer('The server names another address')
    const headers = new Headers(init.headers)
    const isListening = init.method === 'GET' && !headers.has('last-event-id')
    if (isListening && this.#options.listens !== true) return new Response(null, { status: 405 })
    const signal = init.signal ?? new AbortController().signal
    for (let isRenewed = false; ; isRenewed = true) {
      const authorization = await this.#credentials.authorization(signal)
      const response = await this.#attempt(init, headers, authorization, signal)
      if (response.status === 401 && !isRenewed && this.#credentials.refused(authorization)) {
        await response[Symbol.asyncDispose]()
        continue
      }
      return this.#answer(response, signal, failed)
    }
  }

  async #attempt(
    { method = 'GET', body }: RequestInit,
    headers: Headers,
    authorization: Authorization,
    signal: AbortSignal,
  ): Promise<GuardedStream> {
    const { allowed, resolver } = this.#options
    const silence = this.#options.silenceMaxMs ?? silenceMaxMs
    let isSent = false
    const url = new URL(this.#url)
    if (authorization.query !== undefined)
      url.searchParams.set(authorization.query.name, authorization.query.value)
    try {
      return await guardedStream(url.href, {
        method: methodOf(method),
        headers: { ...Object.fromEntries(headers), ...authorization.headers },
        ...(typeof body === 'string' && { body }),
        allowed,
        ...(resolver !== undefined && { resolver }),
        connections: this.#connections,
        signal,
        timeoutMs: silence,
        idleMs: silence,
        discarded: { maxBytes: 64 * 1024, maxMs: 1000 },
        onSend: () => (isSent = true),
      })
    } catch (error) {
      throw failureOf(error, isSent)
    }
  }

  /** Returns the response, of which JSON is passed on as a stream with one event, so that all answers end in the same way. */
  async #answer(
    response: GuardedStream,
    signal: AbortSignal,
    failed: (error: unknown) => void,
  ): Promise<Response> {
    const { status, headers } = response
    await this.#refuseUnusable(response)
    const given = Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' && name !== 'content-length' ? [[name, value] as const] : [],
    )
    if ([204, 205, 304].includes(status)) {
      await response[Symbol.asyncDispose]()
      return new Response(null, { status, headers: Object.fromEntries(given) })
    }
    const kept = new Headers(Object.fromEntries(given))
    const isJson =
      status === 200 && (kept.get('content-type') ?? '').toLowerCase().startsWith('application/json')
    if (isJson) kept.set('content-type', 'text/event-stream')
    const chunks = this.#bounded(response, signal, failed)
    const body = isJson ? asEvent(chunks) : chunks
    return new Response(ReadableStream.from(body), { status, headers: kept })
  }

  async #refuseUnusable(response: GuardedStream): Promise<void> {
    const { status, headers } = response
    const isRedirect = status >= 300 && status < 400 && status !== 304
    const isBusy = [429, 502, 503, 504].includes(status)
    if (!isRedirect && !isBusy && status !== 401 && status !== 403) return
    await response[Symbol.asyncDispose]()
    if (isRedirect)
      throw new InvalidAgentAnswer(`The server redirects requests (HTTP ${status}), which is refused`)
    if (status === 401 || status === 403)
      throw new ServerRefusedCredential(
        credentialRefused(status, this.#options.credential !== undefined),
        headers['www-authenticate'] ?? '',
      )
    const seconds = Number(headers['retry-after'])
    throw new AgentUnreachable(`The server is unavailable (HTTP ${status})`, {
      received: status === 502 || status === 504,
      ...(seconds > 0 && { retryAfterMs: seconds * 1000 }),
    })
  }

  async *#bounded(
    response: GuardedStream,
    signal: AbortSignal,
    failed: (error: unknown) => void,
  ): AsyncGenerator<Buffer> {
    await using _response = response
    using bytes = this.#large.open(signal)
    const max = this.#options.answerMaxBytes ?? answerMaxBytes
    let size = 0
    try {
      for await (const chunk of bytes.of(response.body)) {
        size += chunk.byteLength
        if (size > max) throw new InvalidAgentAnswer(`The server's answer is larger than ${max} bytes`)
        yield chunk
      }
    } catch (error) {
      // The client library reports the end of the stream without the reason.
      failed(failureOf(error, true))
      throw error
    }
  }
}

function methodOf(method: string): 'GET' | 'POST' | 'DELETE' {
  return method === 'GET' || method === 'DELETE' ? method : 'POST'
}

/** A line break within JSON is never part of a text. */
async function* asEvent(chunks: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  yield Buffer.from('data: ')
  for await (const chunk of chunks) {
    for (let at = 0; at < chunk.length; at += 1) if (chunk[at] === 10 || chunk[at] === 13) chunk[at] = 32
    yield chunk
  }
  yield Buffer.from('\n\n')
}

function failureOf(error: unknown, isSent: boolean): unknown {
  if (error instanceof OutgoingRefused) return new InvalidAgentAnswer(error.message)
  if (!(error instanceof OutgoingFailed)) return error
  if (error.reason === 'encoding' || error.reason === 'too_large' || error.reason === 'protocol')
    return new InvalidAgentAnswer(error.message)
  const message =
    error.reason === 'timeout' ? 'The server did not answer in time' : 'The server could not be reached'
  return new AgentUnreachable(message, { received: isSent, cause: error })
}
