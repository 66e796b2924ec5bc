import { errorCode } from '../net/error-code.ts'

export interface CircuitBreakerOptions {
  /** Consecutive connection failures or timeouts that open the breaker. Default 5. */
  failureThreshold?: number
  /** How long requests fail without being sent before the breaker lets a probe through. Default 1 s. */
  openMs?: number
}

/**
 * Circuit breaker for requests to one server. It opens after several consecutive connection failures or timeouts, and
 * requests then fail immediately with the last error. After a pause it lets one probe through; the outcome of the
 * probe closes the breaker or starts another pause. An error response never opens the breaker, because it shows that
 * the server is reachable: a request that provokes one must not affect other callers.
 */
export class CircuitBreaker {
  readonly #failureThreshold: number
  readonly #openMs: number
  #failures = 0
  #open: { error: unknown; until: number; isProbing: boolean } | undefined
  /** Incremented when the breaker opens or closes. Outcomes of requests from earlier generations are ignored. */
  #generation = 0

  constructor({ failureThreshold = 5, openMs = 1000 }: CircuitBreakerOptions = {}) {
    this.#failureThreshold = failureThreshold
    this.#openMs = openMs
  }

  /** @throws the error of `request`; while the breaker is open, the error that opened it */
  async run<T>(request: () => Promise<T>): Promise<T> {
    const open = this.#open
    if (open !== undefined) {
      if (open.isProbing || open.until > performance.now()) throw open.error
      open.isProbing = true
    }
    const generation = this.#generation
    try {
      const result = await request()
      if (generation === this.#generation) this.#close()
      return result
    } catch (error) {
      if (generation === this.#generation) {
        if (isConnectionFailure(error)) this.#countFailure(error)
        else this.#close()
      }
      throw error
    }
  }

  #close(): void {
    this.#failures = 0
    if (this.#open === undefined) return
    this.#open = undefined
    this.#generation += 1
  }

  #countFailure(error: unknown): void {
    this.#failures += 1
    if (this.#open === undefined && this.#failures < this.#failureThreshold) return
    this.#open = { error, until: performance.now() + this.#openMs, isProbing: false }
    this.#generation += 1
  }
}

/** Error codes from undici, sockets and DNS lookups that mean that no response was received. */
const connectionCodes =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|ENOTFOUND|EAI_\w+|UND_ERR_(SOCKET|CONNECT_TIMEOUT|HEADERS_TIMEOUT|BODY_TIMEOUT))$/

/** Whether no complete response was received: no connection, a broken connection or a timeout. */
export function isConnectionFailure(error: unknown): boolean {
  // Discovery errors wrap their cause.
  let cause = error
  for (let depth = 0; depth < 4 && cause instanceof Error; depth += 1) {
    if (cause.name === 'TimeoutError') return true
    const code = errorCode(cause)
    if (typeof code === 'string' && connectionCodes.test(code)) return true
    if (cause instanceof AggregateError && cause.errors.some(isConnectionFailure)) return true
    cause = cause.cause
  }
  return false
}
