export interface CircuitBreakerOptions {
  /** Consecutive connection failures and time-outs that open it. Default 5. */
  failureThreshold?: number
  /** How long requests fail without being sent, before one probe is let through. Default 1 s. */
  openMs?: number
}

/**
 * Circuit breaker for the requests to one server. It opens after several consecutive connection failures or time-outs:
 * requests then fail at once with the last failure. After a pause it lets one probe through, whose outcome closes it or
 * starts another pause. An error that the server answered shows that the server is reachable, so it never opens the
 * breaker: a request that provokes such an error must not affect the requests of other callers.
 */
export class CircuitBreaker {
  readonly #failureThreshold: number
  readonly #openMs: number
  #failures = 0
  #open: { error: unknown; until: number; isProbing: boolean } | undefined
  /** Increases when the breaker opens or closes: outcomes of requests from before are ignored. */
  #generation = 0

  constructor({ failureThreshold = 5, openMs = 1000 }: CircuitBreakerOptions = {}) {
    this.#failureThreshold = failureThreshold
    this.#openMs = openMs
  }

  /** @throws what `request` throws, or, while the breaker is open, the failure that opened it */
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

/** Error codes of undici, sockets and name look-ups that mean that no answer was received. */
const connectionCodes =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN|ENOTFOUND|EAI_\w+|UND_ERR_(SOCKET|CONNECT_TIMEOUT|HEADERS_TIMEOUT|BODY_TIMEOUT))$/

/** Whether no complete answer was received: no connection, a broken connection or a time-out. */
export function isConnectionFailure(error: unknown): boolean {
  // Causes are followed a few steps: discovery wraps what failed below it.
  let cause = error
  for (let depth = 0; depth < 4 && cause instanceof Error; depth += 1) {
    if (cause.name === 'TimeoutError') return true
    const { code } = cause as { code?: unknown }
    if (typeof code === 'string' && connectionCodes.test(code)) return true
    if (cause instanceof AggregateError && cause.errors.some(isConnectionFailure)) return true
    cause = cause.cause
  }
  return false
}
