import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'

const algorithm = 'aes-256-gcm'
const [nonceBytes, tagBytes] = [12, 16]
/** Default limit for a cursor, whose position contains only a few ids and times. */
const textMaxLengthDefault = 1024

/**
 * Encrypts the end of a page, because a position would reveal how many tasks other owners have, and must not be
 * forged. A cursor is valid for one list of one owner.
 */
export class Cursors {
  readonly #key: Uint8Array
  readonly #textMaxLength: number

  /**
   * @param key 32 bytes, identical in all processes that read the store
   */
  constructor(key: Uint8Array, textMaxLength = textMaxLengthDefault) {
    this.#key = key
    this.#textMaxLength = textMaxLength
  }

  seal(list: string, owner: string, position: unknown): string {
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv(algorithm, this.#key, nonce, { authTagLength: tagBytes }).setAAD(
      scopeOf(list, owner),
    )
    const sealed = [
      nonce,
      cipher.update(JSON.stringify(position), 'utf8'),
      cipher.final(),
      cipher.getAuthTag(),
    ]
    return Buffer.concat(sealed).toString('base64url')
  }

  /**
   * @throws ParleyError InvalidParams if `seal` did not create the cursor for this list and owner
   */
  open(list: string, owner: string, cursor: string): unknown {
    try {
      if (cursor.length > this.#textMaxLength || !/^[\w-]+$/.test(cursor)) throw new Error('not base64url')
      const bytes = Buffer.from(cursor, 'base64url')
      const decipher = createDecipheriv(algorithm, this.#key, bytes.subarray(0, nonceBytes), {
        authTagLength: tagBytes,
      })
        .setAAD(scopeOf(list, owner))
        .setAuthTag(bytes.subarray(-tagBytes))
      const text =
        decipher.update(bytes.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
      return JSON.parse(text)
    } catch (cause) {
      const issues = [{ path: 'cursor', message: 'not a cursor of this list' }]
      throw new ParleyError('InvalidParams', { data: { issues }, cause })
    }
  }
}

function scopeOf(list: string, owner: string): Buffer {
  return Buffer.from(JSON.stringify([list, owner]))
}
