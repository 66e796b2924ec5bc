import { RecentMap } from '@parley/kit/did/recent-map'
import type { Agent, Dispatcher } from 'undici'
import type { AgentEntry } from '../../registry/entry.ts'
import { isStopping, refusalMaxBytes } from './refusal.ts'

type Dispatch = Dispatcher['dispatch']
type Handler = Dispatcher.DispatchHandler
type Options = Dispatcher.DispatchOptions

/** A process that could not be reached is asked again after this time, or before when there is no other. */
const avoidMs = 5000
const addressesMax = 10_000
/** The connection, not the process behind it, decided: it may be gone. */
const broken = new Set(['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT'])

interface Attempt {
  origin: string
  /** Those that are tried next. */
  others: string[]
  dispatch: Dispatch
  options: Options
  handler: Handler
}

/**
 * The ways to agents that have several processes: each request goes to the one that has least under way. Nothing is done
 * twice: another one is tried only when no byte has left, or when the first took nothing because it stops. What an agent with one process is sent passes untouched.
 */
export class ReplicaBalancer {
  readonly #underWay = new Map<string, number>()
  readonly #avoided = new RecentMap<string, number>(addressesMax)
  /** An entry is replaced whenever it changes. */
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

  /** Those that could not be reached last; of the others the idlest first, in turn where they are equal. */
  #inOrder(origins: readonly string[]): string[] {
    this.#turn = (this.#turn + 1) % 0xffff
    const now = Date.now()
    const from = this.#turn % origins.length
    return [...origins.slice(from), ...origins.slice(0, from)]
      .map((origin) => ({
        origin,
        avoided: (this.#avoided.get(origin) ?? 0) > now ? 1 : 0,
        underWay: this.#underWay.get(origin) ?? 0,
      }))
      .sort((a, b) => a.avoided - b.avoided || a.underWay - b.underWay)
      .map(({ origin }) => origin)
  }

  #send(attempt: Attempt): boolean {
    const { origin, dispatch, options, handler } = attempt
    this.#count(origin, 1)
    let begun = false
    let refusal: Refusal | undefined
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
            refusal = new Refusal(() => handler.onResponseStart?.(controller, status, headers, message))
          else handler.onResponseStart?.(controller, status, headers, message)
        },
        onResponseData: (controller, chunk) => {
          const passes = refusal === undefined ? [chunk] : refusal.add(chunk)
          for (const one of passes) handler.onResponseData?.(controller, one)
        },
        onResponseEnd: (controller, trailers) => {
          this.#count(origin, -1)
          if (refusal?.isStopping === true) {
            this.#avoided.set(origin, Date.now() + avoidMs)
            this.#send(this.#next(attempt) as Attempt)
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
    const underWay = (this.#underWay.get(origin) ?? 0) + change
    if (underWay <= 0) this.#underWay.delete(origin)
    else this.#underWay.set(origin, underWay)
  }
}

/** Where the path of a request means the same as at the agent's own address. */
function originsOf({ url, replicas = [] }: AgentEntry): string[] {
  const { origin, pathname } = new URL(url)
  const same = replicas.map((replica) => new URL(replica.url)).filter((one) => one.pathname === pathname)
  return [...new Set([origin, ...same.map((one) => one.origin)])]
}

/** A body that comes as a stream is lost with the first attempt. */
function isRepeatable({ body }: Options): boolean {
  return body === null || body === undefined || typeof body === 'string' || body instanceof Uint8Array
}

/** An answer with 503: held back until it is known whether the process only says that it stops. */
class Refusal {
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

  /** Returns what may go on to the caller. */
  add(chunk: Buffer): Buffer[] {
    if (this.#passed) return [chunk]
    this.#held.push(chunk)
    this.#size += chunk.byteLength
    return this.#size > refusalMaxBytes ? this.pass() : []
  }

  /** It is the answer. */
  pass(): Buffer[] {
    if (!this.#passed) this.#start()
    this.#passed = true
    return this.#held.splice(0)
  }
}

function codeOf(error: Error): string {
  return (error as NodeJS.ErrnoException).code ?? ''
}

const isBroken = (error: Error) => broken.has(codeOf(error)) || codeOf(error) === 'UND_ERR_SOCKET'
const isAbort = (error: Error) => codeOf(error) === 'UND_ERR_ABORTED' || error.name === 'AbortError'
