import { randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import type { HttpIntrospector, Introspection, Introspector } from './introspection.ts'
import { type Clocks, IntrospectionCache } from './introspection-cache.ts'
import { type LeaseGrant, type LeasePoll, leaseGrantSchema, leaseMaxMs, leasePath } from './lease-protocol.ts'

export interface LeasedIntrospectorOptions {
  /** Sends the requests. The introspector disposes of it. */
  http: Pick<HttpIntrospector, 'request' | 'post' | 'ping' | typeof Symbol.asyncDispose>
  /** Maximum number of cached responses. Default 10,000. */
  entriesMax?: number
  /** Default: the clocks of this process. */
  clocks?: Clocks
}

/** Longer tokens and responses are not cached. */
const [cachedTokenMaxChars, cachedAnswerMaxBytes] = [4096, 8192]
/** Polls end after this many in a row without a look-up, so that an idle process sends no requests. */
const idlePollsMax = 16
const [retryMinMs, retryMaxMs] = [100, 5000]
/** How long to wait after an answer that grants no lease. */
const noLeaseMs = 1000
const leaveMs = 300

/** A request in progress. */
interface Request {
  /** Version of the cache at which the request began. */
  version: number
  promise: Promise<Introspection>
  /** The request that begins after this one. */
  next: Promise<Introspection> | undefined
}

/**
 * Introspects tokens over HTTP and, if the OAuth server grants leases, caches the responses under a lease. No response is
 * older than the last revocation that returned before the look-up. Without a lease, tokens are introspected with
 * requests, and look-ups of one token share the next request. Look-ups at an OAuth server that grants no leases share a
 * request that is in progress.
 */
export class LeasedIntrospector implements Introspector, AsyncDisposable {
  readonly #http: LeasedIntrospectorOptions['http']
  readonly #cache: IntrospectionCache
  readonly #holder = randomUUID()
  readonly #closing = new AbortController()
  readonly #pending = new Map<string, Request>()
  /** Undefined until the first response. A server that stops grants none for a while. */
  #grantsLeases: boolean | undefined
  #polls = 0
  #polling: Promise<void> | undefined
  #isUsed = false

  constructor(options: LeasedIntrospectorOptions) {
    this.#http = options.http
    this.#cache = new IntrospectionCache(options.entriesMax, options.clocks)
  }

  introspect(token: string): Promise<Introspection> {
    this.#isUsed = true
    return this.#cache.get(token) ?? this.#shared(token)
  }

  /** Rejects if the OAuth server does not respond. */
  ping(): Promise<void> {
    return this.#http.ping()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort()
    await this.#polling
    await this.#http[Symbol.asyncDispose]()
  }

  #shared(token: string): Promise<Introspection> {
    const pending = this.#pending.get(token)
    if (pending === undefined) return this.#start(token)
    // A request that began before the last invalidation may return a response from before it.
    const isCurrent = pending.version === this.#cache.version && this.#cache.hasLease()
    if (isCurrent || this.#grantsLeases === false) return pending.promise
    pending.next ??= pending.promise.then(() => this.#start(token))
    return pending.next
  }

  #start(token: string): Promise<Introspection> {
    const promise = this.#request(token).finally(() => {
      if (this.#pending.get(token) === request) this.#pending.delete(token)
    })
    const request: Request = { version: this.#cache.version, promise, next: undefined }
    this.#pending.set(token, request)
    return promise
  }

  async #request(token: string): Promise<Introspection> {
    const sent = this.#cache.now()
    const { answer, lease, bytes } = await this.#http.request(token)
    if (lease === undefined) {
      this.#grantsLeases ??= false
      return answer
    }
    this.#grantsLeases = true
    if (token.length <= cachedTokenMaxChars && bytes <= cachedAnswerMaxBytes)
      this.#cache.set(token, sent, answer, lease)
    if (!this.#closing.signal.aborted) this.#polling ??= this.#keepLease()
    return answer
  }

  /** Polls until the cache is no longer used. A failure ends the lease, and the next poll begins with an empty cache. */
  async #keepLease(): Promise<void> {
    const { signal } = this.#closing
    let [retryMs, isHeld] = [retryMinMs, false]
    for (let unused = 0; !signal.aborted && unused < idlePollsMax; unused = this.#isUsed ? 0 : unused + 1) {
      this.#isUsed = false
      const sent = this.#cache.poll()
      const grant = await this.#poll(sent.applied && { applied: sent.applied }).catch(() => undefined)
      if (grant !== undefined && grant.lease_ms > 0) {
        this.#cache.granted(sent, grant)
        ;[retryMs, isHeld] = [retryMinMs, true]
        continue
      }
      this.#cache.lost()
      isHeld &&= signal.aborted
      // All processes lose their lease when the server stops, so they return at different times.
      const delayMs = grant === undefined ? retryMs * (0.5 + Math.random()) : noLeaseMs
      retryMs = Math.min(retryMs * 2, retryMaxMs)
      await wait(delayMs, undefined, { signal, ref: false }).catch(() => {})
    }
    this.#polling = undefined
    this.#cache.lost()
    // Revocations then need not wait for the end of the lease.
    if (isHeld) await this.#send({ leave: true }, leaveMs).catch(() => {})
  }

  async #poll(state: Pick<LeasePoll, 'applied'> = {}): Promise<LeaseGrant> {
    return leaseGrantSchema.parse(JSON.parse(await this.#send(state, leaseMaxMs, this.#closing.signal)))
  }

  async #send(
    state: Pick<LeasePoll, 'applied' | 'leave'>,
    timeoutMs: number,
    signal?: AbortSignal,
  ): Promise<string> {
    this.#polls += 1
    const { status, text } = await this.#http.post({
      path: leasePath,
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ holder: this.#holder, poll: this.#polls, ...state } satisfies LeasePoll),
      timeoutMs,
      ...(signal && { signal }),
    })
    if (status !== 200) throw new Error(`the lease route returned ${status}`)
    return text
  }
}
