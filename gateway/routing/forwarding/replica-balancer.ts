import { RecentMap } from '@parley/kit/did/recent-map'
import type { Agent, Dispatcher } from 'undici'
import type { AgentEntry } from '../../registry/entry.ts'
import { isStopping, refusalMaxBytes } from './refusal.ts'

type Dispatch = Dispatcher['dispatch']
type Handler = Dispatcher.DispatchHandler
type Options = Dispatcher.DispatchOptions

/** A process that could not be reached is avoided for this long, unless no other process is left. */
const avoidMs = 5000
const addressesMax = 10_000
/** Connection errors after which a process may be gone. */
const broken = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'])

interface Attempt {
  origin: string
  /** The origins for further attempts. */
  others: string[]
  dispatch: Dispatch
  options: Options
  handler: Handler
}

/**
 * Balances requests over the processes of an agent: each goes to the process with the fewest requests in flight.
 * Another process is tried only when no byte was sent, or when the first rejected the request because it is stopping.
 */
export class ReplicaBalancer {
  readonly #inFlight = new Map<string, number>()
  readonly #avoided = new RecentMap<string, number>(addressesMax)
  /** Keyed by the entry object, because every change to an entry creates a new object. */
  readonly #ways = new WeakMap<AgentEntry, Dispatcher>()
  #turn = 0

  dispatcherFor(entry: AgentEntry, upstream: Agent): Dispatcher {
    if (entry.replicas === undefined || entry.replicas.length < 2) return upstream
    const known = this.#ways.get(entry)
    if (known !== undefined) return known
    const origins = originsOf(entry)
    const way = upstream.compose((dispatch) => (options, handler) => {
      const [origin, ...others] = this.#inOrder(origins)
      return this.#send({ origin: origin as string, others, dispatch, options, handler })
    })
    this.#ways.set(entry, way)
    return way
  }

  /** Sorted by requests in flight, round robin among equals. Processes that could not be reached come last. */
  #inOrder(origins: readonly string[]): string[] {
    this.#turn = (this.#turn + 1) % 0xffff
    const now = Date.now()
    const from = this.#turn % origins.length
    return [...origins.slice(from), ...origins.slice(0, from)]
      .map((origin) => ({
        origin,
        avoided: (this.#avoided.get(origin) ?? 0) > now ? 1 : 0,
        inFlight: this.#inFlight.get(origin) ?? 0,
      }))
      .sort((a, b) => a.avoided - b.avoided || a.inFlight - b.inFlight)
      .map(({ origin }) => origin)
  }

  #send(attempt: Attempt): boolean {
    const { origin, dispatch, options, handler } = attempt
    this.#count(origin, 1)
    let begun = false
    let refusal: HeldResponse | undefined
    return dispatch(
      { ...options, origin },
      {
        onRequestStart: (controller, context) => {
          begun = true
          handler.onRequestStart?.(controller, context)
        },
        onRequestUpgrade: (controller, status, headers, socket) => {
          this.#count(origin, -1)
          handler.onRequestUpgrade?.(controller, status, headers, socket)
        },
        onResponseStart: (controller, status, headers, message) => {
          if (status === 503 && attempt.others.length > 0 && isRepeatable(options))
            refusal = new HeldResponse(() => handler.onResponseStart?.(controller, status, headers, message))
          else handler.onResponseStart?.(controller, status, headers, message)
        },
        onResponseData: (controller, chunk) => {
          const passes = refusal === undefined ? [chunk] : refusal.add(chunk)
          for (const one of passes) handler.onResponseData?.(controller, one)
        },
        onResponseEnd: (controller, trailers) => {
          this.#count(origin, -1)
          const next = refusal?.isStopping === true ? this.#next(attempt) : undefined
          if (next !== undefined) {
            this.#avoided.set(origin, Date.now() + avoidMs)
            this.#send(next)
            return
          }
          for (const one of refusal?.pass() ?? []) handler.onResponseData?.(controller, one)
          handler.onResponseEnd?.(controller, trailers)
        },
        onResponseError: (controller, error) => {
          this.#count(origin, -1)
          if (isBroken(error) || (!begun && !isAbort(error))) this.#avoided.set(origin, Date.now() + avoidMs)
          const next = begun || isAbort(error) ? undefined : this.#next(attempt)
          if (next === undefined) handler.onResponseError?.(controller, error)
          else this.#send(next)
        },
      },
    )
  }

  #next(attempt: Attempt): Attempt | undefined {
    const [origin, ...others] = attempt.others
    return origin === undefined || !isRepeatable(attempt.options) ? undefined : { ...attempt, origin, others }
  }

  #count(origin: string, change: 1 | -1): void {
    const inFlight = (this.#inFlight.get(origin) ?? 0) + change
    if (inFlight <= 0) this.#inFlight.delete(origin)
    else this.#inFlight.set(origin, inFlight)
  }
}

/** Origins of the processes that serve the same base path as the agent's address. */
function originsOf({ url, replicas = [] }: AgentEntry): string[] {
  const { origin, pathname } = new URL(url)
  const same = replicas.map((replica) => new URL(replica.url)).filter((one) => one.pathname === pathname)
  return [...new Set([origin, ...same.map((one) => one.origin)])]
}

/** A streamed body is consumed by the first attempt. */
function isRepeatable({ body }: Options): boolean {
  return body === null || body === undefined || typeof body === 'string' || body instanceof Uint8Array
}

/** A 503 response that is buffered until it is known whether it only says that the process is stopping. */
class HeldResponse {
  readonly #start: () => void
  #held: Buffer[] = []
  #size = 0
  #passed = false

  constructor(start: () => void) {
    this.#start = start
  }

  get isStopping(): boolean {
    return !this.#passed && isStopping(503, Buffer.concat(this.#held))
  }

  /** Returns the chunks to forward to the caller. */
  add(chunk: Buffer): Buffer[] {
    if (this.#passed) return [chunk]
    this.#held.push(chunk)
    this.#size += chunk.byteLength
    return this.#size > refusalMaxBytes ? this.pass() : []
  }

  /** Releases the response to the caller. */
  pass(): Buffer[] {
    if (!this.#passed) this.#start()
    this.#passed = true
    return this.#held.splice(0)
  }
}

function codeOf(error: Error): string {
  return 'code' in error ? String(error.code) : ''
}

const isBroken = (error: Error) => broken.has(codeOf(error)) || codeOf(error) === 'UND_ERR_SOCKET'
const isAbort = (error: Error) => codeOf(error) === 'UND_ERR_ABORTED' || error.name === 'AbortError'
