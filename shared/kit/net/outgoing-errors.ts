/** Machine-readable reason why a request was not sent. */
export type RefusedReason =
  | 'malformed'
  | 'too_long'
  | 'scheme'
  | 'credentials'
  | 'port'
  | 'host'
  | 'local_name'
  | 'not_public'
  | 'request'

/** The guard rejected the request, so retrying is pointless. `message` is a sentence for the author of the URL. */
export class OutgoingRefused extends Error {
  override readonly name = 'OutgoingRefused'
  readonly reason: RefusedReason
  constructor(reason: RefusedReason, message: string) {
    super(message)
    this.reason = reason
  }
}

export type FailedReason =
  | 'name_not_found'
  | 'timeout'
  | 'connection'
  | 'tls'
  | 'too_large'
  | 'encoding'
  | 'protocol'
  | 'busy'
  | 'aborted'

/** The server or the network failed; a later attempt may succeed. `message` contains no local address. */
export class OutgoingFailed extends Error {
  override readonly name = 'OutgoingFailed'
  readonly reason: FailedReason
  constructor(reason: FailedReason, message: string, cause?: unknown) {
    super(message, { cause })
    this.reason = reason
  }
}
