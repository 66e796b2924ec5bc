import { connectionFault } from '@parley/kit/net/connection-fault'

/** The server answered with an error. `code` is 0 when the response is not JSON-RPC, such as the error page of a proxy. */
export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly code: number
  /** The HTTP status. */
  readonly status: number
  /** The `data` of the error; for HTTP 402, the x402 body (spec/payments.md#unpaid-calls). */
  readonly data: Record<string, unknown>
  /** The headers of the HTTP response, for example `retry-after` and `www-authenticate`. */
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

/** No complete response arrived because the connection was refused, reset or idle too long, or the response was too large. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError'

  constructor(url: string, cause: unknown) {
    super(`${url}: ${connectionFault(cause, url) ?? reasonOf(cause)}`, { cause })
  }
}

/** The message from `fetch` is "fetch failed". The reason is in its cause or in the first error of an AggregateError. */
function reasonOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return String(thrown)
  const cause = thrown instanceof AggregateError ? thrown.errors[0] : thrown.cause
  if (cause !== undefined) return reasonOf(cause)
  if (thrown.name === 'TimeoutError') return 'no answer in time'
  return thrown.message || codeOf(thrown) || thrown.name
}

function codeOf(thrown: Error): string {
  return 'code' in thrown && typeof thrown.code === 'string' ? thrown.code : ''
}
