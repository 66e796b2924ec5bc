/**
 * Puts the caller's JSON-RPC id back into an answer as it passes, in pieces of any size: an agent was sent a UUID in its
 * place, which occurs nowhere else.
 */
export class ResponseIdRewriter {
  readonly #sent: Buffer
  readonly #callers: Buffer
  /** The end of what came, where it may be the beginning of the id. */
  #held: Buffer = Buffer.alloc(0)

  constructor(sent: string, callers: unknown) {
    this.#sent = Buffer.from(JSON.stringify(sent))
    this.#callers = Buffer.from(JSON.stringify(callers))
  }

  /** What of the answer may go on. */
  chunk(chunk: Buffer): Buffer {
    let rest = this.#held.byteLength === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const pieces: Buffer[] = []
    for (let at = rest.indexOf(this.#sent); at !== -1; at = rest.indexOf(this.#sent)) {
      pieces.push(rest.subarray(0, at), this.#callers)
      rest = rest.subarray(at + this.#sent.byteLength)
    }
    const heldFrom = rest.byteLength - this.#beginningAtEnd(rest)
    this.#held = rest.subarray(heldFrom)
    pieces.push(rest.subarray(0, heldFrom))
    return pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces)
  }

  /** What was held back when the answer has ended. */
  end(): Buffer {
    return this.#held
  }

  /** How many bytes at the end are a beginning of the id. */
  #beginningAtEnd(rest: Buffer): number {
    const most = Math.min(rest.byteLength, this.#sent.byteLength - 1)
    for (let length = most; length > 0; length -= 1)
      if (rest.subarray(-length).equals(this.#sent.subarray(0, length))) return length
    return 0
  }
}
