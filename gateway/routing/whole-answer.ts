import type { Watch } from './exchange.ts'

const mostBytes = 4 * 1024 * 1024

/** Looks at an answer once it has passed; not at one that is longer than 4 MiB. */
export class WholeAnswer implements Watch {
  readonly #look: (bytes: Buffer) => void
  readonly #chunks: Buffer[] = []
  #size = 0

  constructor(look: (bytes: Buffer) => void) {
    this.#look = look
  }

  chunk(chunk: Buffer): void {
    this.#size += chunk.byteLength
    if (this.#size <= mostBytes) this.#chunks.push(chunk)
    else this.#chunks.length = 0
  }

  end(): void {
    if (this.#size <= mostBytes) this.#look(Buffer.concat(this.#chunks))
  }
}
