import { connectionFault } from '@parley/kit/net/connection-fault'

/** The server answered with an error. `code` is 0 where the answer held no JSON-RPC envelope (a proxy's page, say). */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number
  /** HTTP status. */
  readonly status: number
  readonly data: Record<string, unknown>
  /** Headers of the HTTP answer, for example `retry-after` and `www-authenticate`. */
  readonly headers: Headers

  constructor(fields: {
    code: number
    status: number
    message: string
    data?: Record<string, unknown>
    headers?: Headers
  }) {
    super(fields.message)
    this.code = fields.code
    this.status = fields.status
    this.data = fields.data ?? {}
    this.headers = fields.headers ?? new Headers()
  }
}

/** No answer came, or it broke off: refused, unreachable, reset, silent for too long, too large. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'

  constructor(url: string, cause: unknown) {
    super(`${url}: ${connectionFault(cause, url) ?? reasonOf(cause)}`, { cause })
  }
}

/** `fetch` says "fetch failed" and hides the reason one level down, an AggregateError two levels. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const cause = thrown instanceof AggregateError ? thrown.errors[0] : thrown.cause
  if (cause !== undefined) return reasonOf(cause)
  if (thrown.name === 'TimeoutError') return 'no answer in time'
  return thrown.message || (thrown as NodeJS.ErrnoException).code || thrown.name
}
