import { Agent, type Dispatcher } from 'undici'

export interface UpstreamOptions {
  /** Time to reach an agent. Default 2 s. */
  connectTimeoutMs?: number
  /** Time until an agent begins its answer; a payment status may block for 60 s. Default 2 minutes. */
  headersTimeoutMs?: number
  /** Longest silence inside an answer; our agents send a comment every 15 s. Default 15 minutes. */
  silenceTimeoutMs?: number
}

/**
 * Connections to the agents. Their number is not limited: a stream holds one for as long as it lasts, and a limit would
 * let a few readers lock everybody else out. The clients' own connections are the bound.
 */
export function createUpstream(options: UpstreamOptions = {}): Agent {
  return new Agent({
    ...upstreamLimits(options),
    connect: { timeout: options.connectTimeoutMs ?? 2000 },
  })
}

export function upstreamLimits(options: UpstreamOptions) {
  return {
    connections: null,
    pipelining: 1,
    headersTimeout: options.headersTimeoutMs ?? 120_000,
    bodyTimeout: options.silenceTimeoutMs ?? 15 * 60_000,
    keepAliveTimeout: 30_000,
  }
}

/** Under this key the request's headers carry where and how it goes: @fastify/reply-from hands nothing else through. */
export const forwardTargetKey = Symbol('way')

export interface ForwardTarget {
  upstream: Dispatcher
  signal: AbortSignal
}

type Done = (error: Error | null, response: Dispatcher.ResponseData) => void

/** The upstreams as @fastify/reply-from wants them; a request whose client has left is closed at the agent too. */
export const abortable = {
  request(options: Dispatcher.RequestOptions, done: Done): void {
    const { upstream, signal } = (options.headers as unknown as { [forwardTargetKey]: ForwardTarget })[
      forwardTargetKey
    ]
    upstream.request({ ...options, signal }, done)
  },
}
