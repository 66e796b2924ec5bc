/** Restores the caller's JSON-RPC id in a streamed response to a request that was sent with a UUID as its id. */
export class ResponseIdRewriter {
  readonly #sent: Buffer
  readonly #callers: Buffer
  /** The last bytes received, if they may be the start of the id. */
  #held: Buffer = Buffer.alloc(0)

  constructor(sent: string, callers: unknown) {
    this.#sent = Buffer.from(JSON.stringify(sent))
    this.#callers = Buffer.from(JSON.stringify(callers))
  }

  /** Returns the bytes that can be forwarded. */
  chunk(chunk: Buffer): Buffer {
    let rest = this.#held.byteLength === 0 ? chunk : Buffer.concat([this.#held, chunk])
    const pieces: Buffer[] = []
    for (let at = rest.indexOf(this.#sent); at !== -1; at = rest.indexOf(this.#sent)) {
      pieces.push(rest.subarray(0, at), this.#callers)
      rest = rest.subarray(at + this.#sent.byteLength)
    }
    const heldFrom = rest.byteLength - this.#beginningAtEnd(rest)
    this.#held = rest.subarray(heldFrom)
    const last = rest.subarray(0, heldFrom)
    return pieces.length === 0 ? last : Buffer.concat([...pieces, last])
  }

  /** Returns the remaining held bytes at the end of the response. */
  end(): Buffer {
    return this.#held
  }

  /** Returns the length of the longest suffix that is a prefix of the id. */
  #beginningAtEnd(rest: Buffer): number {
    const most = Math.min(rest.byteLength, this.#sent.byteLength - 1)
    for (let length = most; length > 0; length -= 1)
      if (rest.subarray(-length).equals(this.#sent.subarray(0, length))) return length
    return 0
  }
}
