import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { KeyPair } from '@parley/kit/did/keys'

const [nonceBytes, tagBytes] = [12, 16]
const algorithm = 'aes-256-gcm'

/**
 * Encrypts the tokens that tasks keep (AES-256-GCM). The key is derived from the agent's identity key, so that only this
 * agent can read its task records, also after a restart.
 */
export class AuthoritySeal {
  readonly #key: Uint8Array

  constructor(identityKey: Pick<KeyPair, 'deriveSecret'>) {
    this.#key = identityKey.deriveSecret('parley task authority')
  }

  /** @param authorization the `Authorization` header of a request with a bearer token */
  seal(authorization: string): string {
    const token = authorization.replace(/^bearer +/i, '')
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv(algorithm, this.#key, nonce)
    const sealed = [nonce, cipher.update(token, 'utf8'), cipher.final(), cipher.getAuthTag()]
    return Buffer.concat(sealed).toString('base64url')
  }

  /** Returns the token, or undefined if another key sealed it or it was changed. */
  open(sealed: string): string | undefined {
    const bytes = Buffer.from(sealed, 'base64url')
    if (bytes.byteLength < nonceBytes + tagBytes) return undefined
    try {
      const decipher = createDecipheriv(algorithm, this.#key, bytes.subarray(0, nonceBytes))
      decipher.setAuthTag(bytes.subarray(-tagBytes))
      const text = [decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()]
      return Buffer.concat(text).toString('utf8')
    } catch {
      return undefined
    }
  }
}
