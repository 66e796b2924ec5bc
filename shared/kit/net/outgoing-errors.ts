/** Why a request was not sent: the machine's word for it. */
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

/** The guard says no. Trying again changes nothing. `message` is a sentence for the one who gave the URL. */
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

/** The other side, or the way to it, failed; a later attempt may succeed. No address of ours stands in `message`. */
export class OutgoingFailed extends Error {
  override readonly name = 'OutgoingFailed'
  readonly reason: FailedReason
  constructor(reason: FailedReason, message: string, cause?: unknown) {
    super(message, { cause })
    this.reason = reason
  }
}
