import { setTimeout as waitMs } from 'node:timers/promises'
import { type AllowedHosts, noExceptions } from '@parley/kit/net/allowed-hosts'
import { guardedResolver } from '@parley/kit/net/dns-resolver'
import { OutgoingFailed, OutgoingRefused } from '@parley/kit/net/outgoing-errors'
import { type OutgoingUrl, outgoingUrl } from '@parley/kit/net/outgoing-url'
import { PinnedConnections } from '@parley/kit/net/pinned-connections'
import { type GuardedAnswer, guardedFetch } from '@parley/kit/net/pinned-fetch'
import type { Resolver } from '@parley/kit/net/resolve-public'
import { defaultDialect } from '@parley/wire/codecs/dialects'
import { HostLimiter } from './host-limiter.ts'
import { attemptsMax, backoffMs, postTimeoutMs, retryAfterMs } from './retry-policy.ts'

/** One event for one receiver. */
export interface Delivery {
  url: string
  /** Whose turn it takes: that of the task's owner. Default: one that all deliveries without an owner share. */
  owner?: string | undefined
  /** Sent verbatim, as the bearer credential and as `X-A2A-Notification-Token`. */
  token?: string | undefined
  /** The event as JSON, serialized once: every attempt sends these bytes. */
  body: Buffer
  /** Ends it before, between and during the attempts. */
  signal?: AbortSignal | undefined
  /** Asked right before each POST; false ends the delivery as a signal does. Must not reject. */
  mayPost?: (() => Promise<boolean>) | undefined
  /** Told after each attempt. */
  onAttempt?: ((attempt: Attempt) => void) | undefined
}

/** One POST, or one that the guard did not let out. */
export interface Attempt {
  /** From 1. */
  number: number
  durationMs: number
  /** The receiver's answer, where there was one. */
  status?: number
  /** A sentence for the owner, without addresses, URL or token. */
  error?: string
  /** It failed, and will be tried again. */
  again: boolean
}

/**
 * `refused`: the guard says no to the URL. `redirect`: 3xx, which is never followed. `rejected`: a 4xx other than 429.
 * `exhausted`: every attempt failed.
 */
export type DropReason = 'refused' | 'redirect' | 'rejected' | 'exhausted'

export interface DeliveryResult {
  /** `aborted`: the signal ended it; nothing is decided about the event. */
  outcome: 'delivered' | 'dropped' | 'aborted'
  /** Attempts made. */
  attempts: number
  lastStatus?: number
  lastError?: string
  /** Of what was dropped. */
  reason?: DropReason
}

export interface DelivererOptions {
  /** WEBHOOK_ALLOWED_HOSTS. Default none. */
  allowed?: AllowedHosts
  resolver?: Resolver
  /** Certificates (PEM) that are trusted instead of the well-known ones. */
  ca?: string | undefined
  /** Posts, and connections kept, to one origin. Default 8. */
  perHostMax?: number
  /** The same in all. Default 256. */
  totalMax?: number
  /** For one POST. Default 5 s. */
  timeoutMs?: number
  /** Waits between attempts; rejects when the signal aborts. */
  wait?: (ms: number, signal: AbortSignal) => Promise<unknown>
  /** 0 to 1. */
  random?: () => number
}

/** What is read of an answer's body so that its connection can be used again. */
const answerMaxBytes = 16 * 1024
/** URLs of at most 2,048 characters. */
const knownUrlsMax = 1000

/** What an attempt came to. */
interface Outcome {
  attempt: Omit<Attempt, 'number' | 'again'>
  verdict: 'delivered' | 'retry' | DropReason
  retryAfterMs: number
}

/**
 * Delivers events to receivers (spec/webhooks.md#delivery). Any 2xx status is an
 * acknowledgement, as soon as it is there: a body that is cut, endless or too large changes nothing. 5xx, 429, a failed
 * connection and a time-out are tried again; any other status drops the event. Interim answers (1xx) are passed over;
 * a 101 switches nothing and is a failed connection.
 */
export class Deliverer implements AsyncDisposable {
  readonly #options: Required<Omit<DelivererOptions, 'ca' | 'perHostMax' | 'totalMax'>>
  readonly #connections: PinnedConnections
  readonly #turns: HostLimiter
  /** Those that may be asked, as far as their text tells. */
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
    this.#turns = new HostLimiter({ perHostMax, totalMax })
    this.#connections = new PinnedConnections({ perHostMax, totalMax, ca })
  }

  /** Posts under way now. Deliveries that wait, for a turn or for their next attempt, are not counted. */
  get underWay(): number {
    return this.#turns.underWay
  }

  /** Never rejects. Waiting for a turn (bounds per host and in all) takes nothing of the time for the POST. */
  async deliver(delivery: Delivery): Promise<DeliveryResult> {
    const signal = delivery.signal ?? new AbortController().signal
    let last: Omit<DeliveryResult, 'outcome' | 'reason'> = { attempts: 0 }
    while (!signal.aborted) {
      const outcome = await this.#attempt(delivery, signal)
      if (outcome === undefined) break
      const number = last.attempts + 1
      last = resultOf(number, outcome.attempt)
      const again = outcome.verdict === 'retry' && number < attemptsMax
      delivery.onAttempt?.({ number, again, ...outcome.attempt })
      if (outcome.verdict === 'delivered') return { outcome: 'delivered', ...last }
      if (outcome.verdict !== 'retry') return { outcome: 'dropped', ...last, reason: outcome.verdict }
      if (!again) return { outcome: 'dropped', ...last, reason: 'exhausted' }
      const ms = backoffMs(number, this.#options.random(), outcome.retryAfterMs)
      // What it rejects with is the signal's.
      await this.#options.wait(ms, signal).catch(() => {})
    }
    return { outcome: 'aborted', ...last }
  }

  /** Closes every connection; deliveries under way fail and are tried again, so abort them first. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connections[Symbol.asyncDispose]()
  }

  /** The verdict on a URL's text is always the same; names in it are resolved, and their addresses judged, for each POST. */
  #read(url: string): OutgoingUrl {
    const known = this.#urls.get(url)
    if (known !== undefined) return known
    const read = outgoingUrl(url, this.#options.allowed)
    if (this.#urls.size >= knownUrlsMax) this.#urls.clear()
    this.#urls.set(url, read)
    return read
  }

  /** Undefined: the signal ended it. */
  async #attempt(delivery: Delivery, signal: AbortSignal): Promise<Outcome | undefined> {
    let began = performance.now()
    const timed = (result: Omit<Attempt, 'number' | 'again' | 'durationMs'>) => ({
      durationMs: performance.now() - began,
      ...result,
    })
    try {
      const target = this.#read(delivery.url)
      const done = await this.#turns.take(target.origin, signal, delivery.owner)
      let answered: boolean | undefined
      try {
        if (delivery.mayPost !== undefined && !(await delivery.mayPost())) return undefined
        answered = false
        began = performance.now()
        const answer = await this.#post(target, delivery, signal)
        answered = true
        const wait = retryAfterMs(answer.headers['retry-after'], Date.now())
        return {
          attempt: timed(described(answer.status)),
          verdict: verdictOn(answer.status),
          retryAfterMs: wait,
        }
      } finally {
        done(signal.aborted ? undefined : answered)
      }
    } catch (error) {
      if (signal.aborted) return undefined
      if (error instanceof OutgoingRefused)
        return { attempt: timed({ error: error.message }), verdict: 'refused', retryAfterMs: 0 }
      const sentence = error instanceof OutgoingFailed ? error.message : 'The request failed'
      return { attempt: timed({ error: sentence }), verdict: 'retry', retryAfterMs: 0 }
    }
  }

  #post(target: OutgoingUrl, { token, body }: Delivery, signal: AbortSignal): Promise<GuardedAnswer> {
    const { allowed, resolver, timeoutMs } = this.#options
    return guardedFetch(target, {
      method: 'POST',
      headers: defaultDialect.webhookHeaders(token),
      body,
      discardBody: true,
      maxBytes: answerMaxBytes,
      timeoutMs,
      allowed,
      resolver,
      signal,
      connections: this.#connections,
    })
  }
}

function verdictOn(status: number): Outcome['verdict'] {
  if (status < 300) return 'delivered'
  if (status < 400) return 'redirect'
  return status === 429 || status >= 500 ? 'retry' : 'rejected'
}

function described(status: number): { status: number; error?: string } {
  return status < 300 ? { status } : { status, error: `The receiver answered with ${status}` }
}

function resultOf(attempts: number, { status, error }: Outcome['attempt']) {
  return {
    attempts,
    ...(status === undefined ? {} : { lastStatus: status }),
    ...(error === undefined ? {} : { lastError: error }),
  }
}
