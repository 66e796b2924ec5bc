import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomFillSync,
} from 'node:crypto'

export const keyBytes = 32
const nonceBytes = 12
const tagBytes = 16

/** Random bytes are drawn in blocks, because each call of the generator costs more than the bytes. */
const pool = Buffer.alloc(nonceBytes * 256)
let used = pool.byteLength

/** Returns a random nonce. A key can encrypt 2^32 texts before the probability of a repeated nonce exceeds 2^-32. */
function newNonce(): Buffer {
  if (used === pool.byteLength) {
    randomFillSync(pool)
    used = 0
  }
  used += nonceBytes
  return Buffer.from(pool.subarray(used - nonceBytes, used))
}

/** A key of AES-256-GCM. Encrypted texts are base64url of nonce, ciphertext and tag. */
export class CipherKey {
  readonly #key: KeyObject

  /** @param bytes 32 bytes. The caller may overwrite them afterwards. */
  constructor(bytes: Uint8Array) {
    if (bytes.byteLength !== keyBytes) throw new RangeError(`A key has ${keyBytes} bytes.`)
    this.#key = createSecretKey(bytes)
  }

  /** @param context what the text is and to which record or file it belongs; `open` must pass the same */
  seal(text: string, context: string): string {
    const nonce = newNonce()
    const cipher = createCipheriv('aes-256-gcm', this.#key, nonce).setAAD(Buffer.from(context))
    const ciphertext = cipher.update(text, 'utf8')
    // GCM has no padding: the last part is empty.
    cipher.final()
    return Buffer.concat([nonce, ciphertext, cipher.getAuthTag()]).toString('base64url')
  }

  /** Returns the text, or undefined if it was encrypted with another key or context, or was changed. */
  open(sealed: string, context: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url')
    if (bytes.byteLength < nonceBytes + tagBytes) return undefined
    const [nonce, tag] = [bytes.subarray(0, nonceBytes), bytes.subarray(-tagBytes)]
    const decipher = createDecipheriv('aes-256-gcm', this.#key, nonce, { authTagLength: tagBytes })
    decipher.setAAD(Buffer.from(context)).setAuthTag(tag)
    try {
      return (
        decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
      )
    } catch {
      return undefined
    }
  }

  /** Returns a keyed hash of the text, which reveals nothing without the key. */
  hash(text: string): string {
    return createHmac('sha256', this.#key).update(text).digest('base64url')
  }
}

/** Derives independent bytes for one purpose (RFC 5869). */
export function derivedBytes(secret: Uint8Array, purpose: string): Buffer {
  return Buffer.from(hkdfSync('sha256', secret, '', purpose, keyBytes))
}
