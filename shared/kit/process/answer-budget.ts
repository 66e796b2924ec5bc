import { ParleyError } from '@parley/wire/errors'

export interface AnswerLimits {
  /** Maximum number of bytes in unread responses to one caller. */
  callerMaxBytes: number
  /** Maximum number of bytes in unread responses to all callers. */
  processMaxBytes: number
}

/** Responses up to this size count only for their caller, so that others' unread responses cannot block them. */
const smallBytes = 64 * 1024
/** A large response counts as at most this fraction of the caller's limit, so that the caller can still poll. */
const largestShare = 15 / 16

/** Counts the bytes of responses that clients have not read yet, and rejects responses beyond the limits. */
export class AnswerBudget {
  readonly #limits: AnswerLimits
  readonly #callers = new Map<string, number>()
  #bytes = 0

  constructor(limits: AnswerLimits) {
    this.#limits = limits
  }

  /** Number of bytes in all unread responses. */
  get bytes(): number {
    return this.#bytes
  }

  /** Creates a claim of 0 bytes for one response to the caller. */
  open(caller: string): AnswerClaim {
    return new AnswerClaim((from, to) => this.#move(caller, from, to))
  }

  #move(caller: string, from: number, to: number): void {
    const callerChange = this.#callerBytes(to) - this.#callerBytes(from)
    const processChange = this.#processBytes(to) - this.#processBytes(from)
    const callerTotal = (this.#callers.get(caller) ?? 0) + callerChange
    if (callerChange > 0 && callerTotal > this.#limits.callerMaxBytes) throw callerLimitExceeded()
    if (processChange > 0 && this.#bytes + processChange > this.#limits.processMaxBytes)
      throw processLimitExceeded()
    this.#bytes += processChange
    if (callerTotal > 0) this.#callers.set(caller, callerTotal)
    else this.#callers.delete(caller)
  }

  /**
   * Returns the bytes that count for the caller, capped so that an oversized response can be sent if no other is
   * pending.
   */
  #callerBytes(bytes: number): number {
    const { callerMaxBytes, processMaxBytes } = this.#limits
    return Math.min(bytes, Math.floor(callerMaxBytes * largestShare), processMaxBytes)
  }

  #processBytes(bytes: number): number {
    return bytes <= smallBytes ? 0 : this.#callerBytes(bytes)
  }
}

/** Bytes reserved for one response until it has been read or its client has disconnected. */
export class AnswerClaim implements Disposable {
  readonly #move: (from: number, to: number) => void
  #bytes = 0
  #released = false

  constructor(move: (from: number, to: number) => void) {
    this.#move = move
  }

  get bytes(): number {
    return this.#bytes
  }

  /**
   * Raises the claim to this size if it is smaller.
   * @throws ParleyError TooManyRequests (the caller's limit), Unavailable (the limit of the process)
   */
  reserve(bytes: number): void {
    if (bytes > this.#bytes) this.#set(bytes)
  }

  /** Reduces the claim to this size if it is larger. */
  shrink(bytes: number): void {
    if (bytes < this.#bytes) this.#set(bytes)
  }

  /** Like `reserve`, but returns false instead of throwing. */
  tryReserve(bytes: number): boolean {
    try {
      this.reserve(bytes)
      return true
    } catch {
      return false
    }
  }

  /** Releases the claim: the response has been read, or the client has disconnected. */
  [Symbol.dispose](): void {
    this.shrink(0)
    this.#released = true
  }

  #set(bytes: number): void {
    // The client disconnected before the response was ready, so a new reservation would never be released.
    if (this.#released) return
    this.#move(this.#bytes, bytes)
    this.#bytes = bytes
  }
}

const reason = 'unread_answers'

/** Whether the error was thrown by an answer budget. */
export function isBudgetRefusal(error: unknown): error is ParleyError {
  return error instanceof ParleyError && error.data['reason'] === reason
}

function callerLimitExceeded(): ParleyError {
  return new ParleyError('TooManyRequests', {
    message: 'Too many bytes of your responses are unread: read or close them, then try again',
    data: { reason },
    headers: { 'retry-after': '1' },
  })
}

function processLimitExceeded(): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'Too many bytes of responses are in progress: try again later, or request a smaller response',
    data: { reason },
    headers: { 'retry-after': '2' },
  })
}
