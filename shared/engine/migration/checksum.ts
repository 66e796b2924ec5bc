import { createHash } from 'node:crypto'

const modulus = 1n << 256n

/** A checksum of documents that does not depend on their order: the sum of their SHA-256 hashes. */
export class Checksum {
  #sum = 0n
  count = 0

  add(document: object): void {
    const digest = createHash('sha256')
      .update(JSON.stringify(plain(document)))
      .digest('hex')
    this.#sum = (this.#sum + BigInt(`0x${digest}`)) % modulus
    this.count += 1
  }

  /** The checksum as 64 hexadecimal digits. */
  get text(): string {
    return this.#sum.toString(16).padStart(64, '0')
  }
}

/** Normalizes sent and returned documents to the same form: fields in order, bytes as a hash. */
function plain(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Date) return value.toISOString()
  const bytes = value instanceof Uint8Array ? value : bytesIn(value)
  if (bytes !== undefined) return createHash('sha256').update(bytes).digest('base64')
  if (Array.isArray(value)) return value.map(plain)
  const long = value as { toNumber?: () => number }
  if (typeof long.toNumber === 'function') return long.toNumber()
  const fields = Object.entries(value).filter(([, inner]) => inner !== undefined)
  return Object.fromEntries(
    fields.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, inner]) => [name, plain(inner)]),
  )
}

/** Returns the bytes of a driver `Binary`. */
function bytesIn(value: object): Uint8Array | undefined {
  const { buffer } = value as { buffer?: unknown }
  return buffer instanceof Uint8Array ? buffer : undefined
}
