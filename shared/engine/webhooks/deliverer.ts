import { setTimeout as waitMs } from 'node:timers/promises'
import { type AllowedHosts, noExceptions } from '@parley/kit/net/allowed-hosts'
import { guardedResolver } from '@parley/kit/net/dns-resolver'
import { OutgoingFailed, OutgoingRefused } from '@parley/kit/net/outgoing-errors'
import { type OutgoingUrl, outgoingUrl } from '@parley/kit/net/outgoing-url'
import { PinnedConnections } from '@parley/kit/net/pinned-connections'
import { type GuardedResponse, guardedFetch } from '@parley/kit/net/pinned-fetch'
import type { Resolver } from '@parley/kit/net/resolve-public'
import type { TraceContext } from '@parley/kit/telemetry/trace-context'
import { inSpan, tracing } from '@parley/kit/telemetry/tracing'
import { dialectNamed } from '@parley/wire/codecs/dialects'
import type { PushConfigInput } from '@parley/wire/model/call'
import { HostLimiter } from './host-limiter.ts'
import {
  attemptsMax,
  backoffMs,
  type DropReason,
  postTimeoutMs,
  retryAfterMs,
  type Verdict,
  verdictOn,
} from './retry-policy.ts'

/** One event for one receiver. */
export interface Delivery extends Pick<PushConfigInput, 'token' | 'credentials' | 'dialect'> {
  url: string
  /** The owner of the task, used for fair scheduling. Deliveries without an owner count as one owner. */
  owner?: string | undefined
  /** The serialized event. Every attempt sends these bytes. */
  body: Buffer
  /** The trace of the task. Each attempt is a step of it. */
  trace?: TraceContext | undefined
  /** Aborts the delivery before, between or during attempts. */
  signal?: AbortSignal | undefined
  /** Called before each POST. Returning false aborts the delivery. Must not reject. */
  mayPost?: (() => Promise<boolean>) | undefined
  /** Called after each attempt. */
  onAttempt?: ((attempt: Attempt) => void) | undefined
}

/** One request, or an attempt that the URL guard refused. */
export interface Attempt {
  /** The number of the attempt, starting with 1. */
  number: number
  durationMs: number
  /** The HTTP status if the receiver responded. */
  status?: number
  /** A sentence for the owner that contains no address, URL or token. */
  error?: string
  /** The attempt failed and will be retried. */
  willRetry: boolean
  /** The delay before the retry. */
  retryMs?: number
}

export interface DeliveryResult {
  /** `aborted` means that the event was neither delivered nor dropped. */
  outcome: 'delivered' | 'dropped' | 'aborted'
  /** The number of attempts. */
  attempts: number
  lastStatus?: number
  lastError?: string
  /** Why the event was dropped. */
  reason?: DropReason
}

export interface DelivererOptions {
  /** The hosts in WEBHOOK_ALLOWED_HOSTS. Default none. */
  allowed?: AllowedHosts
  resolver?: Resolver
  /** Trusted certificates (PEM) that replace the default certificates. */
  ca?: string | undefined
  /** Maximum number of concurrent requests and of kept connections per origin. Default 8. */
  perHostMax?: number
  /** Maximum number of concurrent requests and of kept connections in total. Default 256. */
  totalMax?: number
  /** Timeout for one request. Default 5 s. */
  timeoutMs?: number
  /** Waits between attempts. Rejects when the signal aborts. */
  wait?: (ms: number, signal: AbortSignal) => Promise<unknown>
  /** Returns a random number from 0 to 1. */
  random?: () => number
}

/** The maximum number of body bytes that are read so that the connection can be reused. */
const responseMaxBytes = 16 * 1024
/** Size of the URL cache. A URL has at most 2,048 characters. */
const cachedUrlsMax = 1000

/** The outcome of one attempt. */
interface Outcome {
  attempt: Omit<Attempt, 'number' | 'willRetry'>
  verdict: Verdict
  retryAfterMs: number
}

/**
 * Delivers events to receivers (spec/webhooks.md#delivery). A 2xx status acknowledges the event immediately,
 * even if the body is truncated, endless or large. 5xx and 429 statuses, connection failures and timeouts are
 * retried. Any other status drops the event. Interim responses (1xx) are ignored, except that 101 counts as a
 * connection failure.
 */
export class Deliverer implements AsyncDisposable {
  readonly #options: Required<Omit<DelivererOptions, 'ca' | 'perHostMax' | 'totalMax'>>
  readonly #connections: PinnedConnections
  readonly #limiter: HostLimiter
  /** URLs that passed all checks of their text. */
  readonly #urls = new Map<string, OutgoingUrl>()

  constructor(options: DelivererOptions = {}) {
    const { perHostMax = 8, totalMax = 256, ca } = options
    this.#options = {
      allowed: options.allowed ?? noExceptions,
      resolver: options.resolver ?? guardedResolver(options.allowed ?? noExceptions),
      timeoutMs: options.timeoutMs ?? postTimeoutMs,
      wait: options.wait ?? ((ms, signal) => waitMs(ms, undefined, { signal })),
      random: options.random ?? Math.random,
    }
    this.#limiter = new HostLimiter({ perHostMax, totalMax })
    this.#connections = new PinnedConnections({ perHostMax, totalMax, ca })
  }

  /** The number of active requests. Deliveries that wait for a slot or a retry are not counted. */
  get inFlight(): number {
    return this.#limiter.inFlight
  }

  /**
   * Delivers the event. Never rejects. The wait for a slot (limited per host and in total) does not count
   * towards the request timeout.
   */
  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    const signal = delivery.signal ?? new AbortController().signal
    let last: Omit<DeliveryResult, 'outcome' | 'reason'> = { attempts: 0 }
    while (!signal.aborted) {
      const number = last.attempts + 1
      const outcome = await this.#attempt(delivery, number, signal)
      if (outcome === undefined) break
      last = resultOf(number, outcome.attempt)
      const willRetry = outcome.verdict === 'retry' && number < attemptsMax
      const retryMs = willRetry && {
        retryMs: backoffMs(number, this.#options.random(), outcome.retryAfterMs),
      }
      delivery.onAttempt?.({ number, willRetry, ...outcome.attempt, ...retryMs })
      if (outcome.verdict === 'delivered') return { outcome: 'delivered', ...last }
      if (outcome.verdict !== 'retry') return { outcome: 'dropped', ...last, reason: outcome.verdict }
      if (retryMs === false) return { outcome: 'dropped', ...last, reason: 'exhausted' }
      // This rejects only when the signal aborts.
      await this.#options.wait(retryMs.retryMs, signal).catch(() => {})
    }
    return { outcome: 'aborted', ...last }
  }

  /** Closes all connections. Abort deliveries first, because otherwise they would be retried. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connections[Symbol.asyncDispose]()
  }

  /** Caches the result of checking the URL's text. Its host name is resolved and checked for each request. */
  #parseUrl(url: string): OutgoingUrl {
    const cached = this.#urls.get(url)
    if (cached !== undefined) return cached
    const read = outgoingUrl(url, this.#options.allowed)
    if (this.#urls.size >= cachedUrlsMax) this.#urls.clear()
    this.#urls.set(url, read)
    return read
  }

  /** Makes one attempt. Returns undefined if the delivery was aborted. */
  async #attempt(delivery: Delivery, number: number, signal: AbortSignal): Promise<Outcome | undefined> {
    let startedAt = performance.now()
    const timed = (result: Omit<Attempt, 'number' | 'willRetry' | 'durationMs'>) => ({
      durationMs: performance.now() - startedAt,
      ...result,
    })
    try {
      const target = this.#parseUrl(delivery.url)
      const release = await this.#limiter.acquire(target.origin, signal, delivery.owner)
      let answered: boolean | undefined
      try {
        if (delivery.mayPost !== undefined && !(await delivery.mayPost())) return undefined
        answered = false
        startedAt = performance.now()
        const answer = await this.#trace(target, { delivery, number }, (trace) =>
          this.#post(target, { ...delivery, trace }, signal),
        )
        answered = true
        const wait = retryAfterMs(answer.headers['retry-after'], Date.now())
        return {
          attempt: timed(statusDetails(answer.status)),
          verdict: verdictOn(answer.status),
          retryAfterMs: wait,
        }
      } finally {
        release(signal.aborted ? undefined : answered)
      }
    } catch (error) {
      if (signal.aborted) return undefined
      if (error instanceof OutgoingRefused)
        return { attempt: timed({ error: error.message }), verdict: 'refused', retryAfterMs: 0 }
      const sentence = error instanceof OutgoingFailed ? error.message : 'The request failed'
      return { attempt: timed({ error: sentence }), verdict: 'retry', retryAfterMs: 0 }
    }
  }

  /** Makes an attempt a step of the trace of the task, which the receiver is informed of. */
  async #trace(
    { host }: OutgoingUrl,
    { delivery: { trace }, number }: { delivery: Delivery; number: number },
    post: (trace: TraceContext | undefined) => Promise<GuardedResponse>,
  ): Promise<GuardedResponse> {
    if (tracing() === undefined || trace === undefined) return post(trace)
    const attributes = { 'server.address': host, 'http.request.method': 'POST', 'parley.attempt': number }
    return inSpan('deliver webhook', { kind: 'client', parent: trace, attributes }, async (span) => {
      const answer = await post(span.context)
      span.set({ 'http.response.status_code': answer.status })
      if (answer.status >= 300) span.fail(String(answer.status))
      return answer
    })
  }

  #post(target: OutgoingUrl, delivery: Delivery, signal: AbortSignal): Promise<GuardedResponse> {
    const { dialect, body } = delivery
    const { allowed, resolver, timeoutMs } = this.#options
    return guardedFetch(target, {
      method: 'POST',
      headers: { ...dialectNamed(dialect).webhookHeaders(delivery), ...delivery.trace },
      body,
      discardBody: true,
      maxBytes: responseMaxBytes,
      timeoutMs,
      allowed,
      resolver,
      signal,
      connections: this.#connections,
    })
  }
}

function statusDetails(status: number): { status: number; error?: string } {
  return status < 300 ? { status } : { status, error: `The receiver responded with ${status}` }
}

function resultOf(attempts: number, { status, error }: Outcome['attempt']) {
  return {
    attempts,
    ...(status === undefined ? {} : { lastStatus: status }),
    ...(error === undefined ? {} : { lastError: error }),
  }
}
