import { Agent, type Dispatcher } from 'undici'

export interface UpstreamOptions {
  /** Default 2 s. */
  connectTimeoutMs?: number
  /** Maximum time until the response headers. A payment status request may block for 60 s. Default 2 minutes. */
  headersTimeoutMs?: number
  /** Longest silence within a response body. Parley agents send a comment every 15 s. Default 15 minutes. */
  silenceTimeoutMs?: number
}

/**
 * Connections to the agents. Their number is not limited, because each stream holds a connection and a limit would
 * let a few readers block all others. The limit on client connections bounds their number.
 */
export function createUpstream(options: UpstreamOptions = {}): Agent {
  return new Agent({
    ...upstreamLimits(options),
    connect: { timeout: options.connectTimeoutMs ?? 2000 },
  })
}

const headersTimeoutMs = 120_000

/** An agent answers a blocking send when its own limit (SEND_WAIT_MAX_SECONDS) is reached at the latest. */
export function upstreamOptions({ sendWaitMaxMs }: { sendWaitMaxMs: number }): UpstreamOptions {
  return { headersTimeoutMs: Math.max(headersTimeoutMs, sendWaitMaxMs + 30_000) }
}

export function upstreamLimits(options: UpstreamOptions) {
  return {
    connections: null,
    pipelining: 1,
    headersTimeout: options.headersTimeoutMs ?? headersTimeoutMs,
    bodyTimeout: options.silenceTimeoutMs ?? 15 * 60_000,
    keepAliveTimeout: 30_000,
  }
}

/** Key in the request headers that carries the target, because @fastify/reply-from passes nothing else through. */
export const forwardTargetKey = Symbol('way')

export interface ForwardTarget {
  upstream: Dispatcher
  signal: AbortSignal
}

type Done = (error: Error | null, response: Dispatcher.ResponseData) => void

/** An undici client for @fastify/reply-from that sends each request to its target and aborts it with the client. */
export const abortable = {
  request(options: Dispatcher.RequestOptions, done: Done): void {
    const { upstream, signal } = (options.headers as unknown as { [forwardTargetKey]: ForwardTarget })[
      forwardTargetKey
    ]
    upstream.request({ ...options, signal }, done)
  },
}
