import { ParleyError } from '@parley/wire/errors'

export interface AnswerLimits {
  /** Bytes of answers under way to one caller. */
  callerMaxBytes: number
  /** The same to all callers. */
  processMaxBytes: number
}

/** Answers up to this size count for their caller alone: what others leave unread must not stop polling and sending. */
const smallBytes = 64 * 1024
/** One large answer counts as at most this share of the caller's limit, so that the caller can still poll. */
const largestShare = 15 / 16

/** Counts the bytes of answers that clients have not read yet, and refuses more than the limits allow. */
export class AnswerBudget {
  readonly #limits: AnswerLimits
  readonly #callers = new Map<string, number>()
  #bytes = 0

  constructor(limits: AnswerLimits) {
    this.#limits = limits
  }

  /** Of all answers under way. */
  get bytes(): number {
    return this.#bytes
  }

  /** A claim of 0 bytes for one answer to the caller. */
  open(caller: string): AnswerClaim {
    return new AnswerClaim((from, to) => this.#move(caller, from, to))
  }

  #move(caller: string, from: number, to: number): void {
    const change = this.#ofCaller(to) - this.#ofCaller(from)
    const changeInAll = this.#ofProcess(to) - this.#ofProcess(from)
    const ofCaller = (this.#callers.get(caller) ?? 0) + change
    if (change > 0 && ofCaller > this.#limits.callerMaxBytes) throw tooMuchForCaller()
    if (changeInAll > 0 && this.#bytes + changeInAll > this.#limits.processMaxBytes) throw tooMuchInAll()
    this.#bytes += changeInAll
    if (ofCaller > 0) this.#callers.set(caller, ofCaller)
    else this.#callers.delete(caller)
  }

  /** What one answer counts for its caller: one that is larger than the limits is sent when no other large one is under way. */
  #ofCaller(bytes: number): number {
    const { callerMaxBytes, processMaxBytes } = this.#limits
    return Math.min(bytes, Math.floor(callerMaxBytes * largestShare), processMaxBytes)
  }

  #ofProcess(bytes: number): number {
    return bytes <= smallBytes ? 0 : this.#ofCaller(bytes)
  }
}

/** The bytes that one answer may hold until it has been read or its client has left. */
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
   * Raises the claim to this size. A claim that is as large already stays as it is.
   * @throws ParleyError TooManyRequests (the caller's limit), Unavailable (the limit of the process)
   */
  reserve(bytes: number): void {
    if (bytes > this.#bytes) this.#set(bytes)
  }

  /** Reduces the claim to this size, where it is larger. */
  shrink(bytes: number): void {
    if (bytes < this.#bytes) this.#set(bytes)
  }

  /** As `reserve`; false instead of an error. */
  tryReserve(bytes: number): boolean {
    try {
      this.reserve(bytes)
      return true
    } catch {
      return false
    }
  }

  /** The answer has been read, or its client has left. */
  [Symbol.dispose](): void {
    this.shrink(0)
    this.#released = true
  }

  #set(bytes: number): void {
    // The client left while its answer was made: nothing would release a reservation made now.
    if (this.#released) return
    this.#move(this.#bytes, bytes)
    this.#bytes = bytes
  }
}

const reason = 'unread_answers'

/** Whether a budget refused it. */
export function isBudgetRefusal(error: unknown): error is ParleyError {
  return error instanceof ParleyError && error.data['reason'] === reason
}

function tooMuchForCaller(): ParleyError {
  return new ParleyError('TooManyRequests', {
    message: 'Too many bytes of your answers have not been read yet: read or close them, then try again',
    data: { reason },
    headers: { 'retry-after': '1' },
  })
}

function tooMuchInAll(): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'Too many bytes of answers are under way: try again later, or request a smaller answer',
    data: { reason },
    headers: { 'retry-after': '2' },
  })
}
