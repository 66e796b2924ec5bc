import { createCipheriv, createDecipheriv, hash, hkdfSync, randomBytes } from 'node:crypto'
import { RecentMap } from '@parley/kit/did/recent-map'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'

const exchangedClaims = z.object({
  jti: z.string(),
  /** The client that the token acts for. */
  clientId: z.string(),
  sub: z.string().optional(),
  /** Scopes separated by spaces. */
  scope: z.string(),
  /** The only server that may accept the token. */
  aud: z.string(),
  /** All parties that act for the client, the current one first: gateways by their URL, agents by their client id. */
  actors: z.array(z.string()).min(1),
  /** The thumbprint of the key to which the token is bound (RFC 9449). */
  jkt: z.string().optional(),
  /** Seconds since 1970, as `exp`. */
  iat: z.number(),
  exp: z.number(),
  /** The `jti` of each exchanged token between the root token and this one. */
  ancestors: z.array(z.string()),
  /** The stored token with which the chain of exchanges began. */
  root: z.object({
    model: z.string(),
    /** The id of the record, which is a hash of the token. */
    id: z.string(),
    grantId: z.string().optional(),
    exp: z.number().optional(),
  }),
})

/** The content of an exchanged token, which only this OAuth server can read. */
export type ExchangedClaims = z.infer<typeof exchangedClaims>

const version = 1
const keyIdBytes = 4
/** Version, key id and the number of the day. */
const headerBytes = 1 + keyIdBytes + 2
const nonceBytes = 12
const tagBytes = 16
const daySeconds = 86_400
/** Keys of a few days and a few generations are in use at one time. */
const dayKeysMax = 64

/** A kind of sealed text. Each kind has separate keys. */
export interface SealedForm<Claims> {
  /** The first characters of each text. */
  prefix: string
  /** Names the kind in the derivation of its keys. */
  purpose: string
  schema: z.ZodType<Claims>
  maxChars: number
}

const exchangedForm: SealedForm<ExchangedClaims> = {
  prefix: 'pxt_',
  purpose: 'parley exchanged token',
  schema: exchangedClaims,
  // A token of this length still fits into an Authorization header.
  maxChars: 6144,
}

export function isExchangedToken(token: string): boolean {
  return token.startsWith(exchangedForm.prefix)
}

/**
 * Seals claims with AES-256-GCM, so that an exchange stores nothing. Each day has a separate key, derived from a secret
 * of the gateways, which limits the number of random nonces per key. The header names the secret, so tokens stay readable
 * after a rotation while the old secret is still listed.
 */
export class Seal<Claims extends { iat: number }> {
  readonly #form: SealedForm<Claims>
  readonly #secrets: { id: Buffer; secret: string | Uint8Array }[]
  readonly #dayKeys = new RecentMap<string, Buffer>(dayKeysMax)

  /** @param secrets the first one seals, and all of them open */
  constructor(form: SealedForm<Claims>, secrets: readonly (string | Uint8Array)[]) {
    this.#form = form
    this.#secrets = secrets.map((secret) => ({
      id: Buffer.from(hkdfSync('sha256', secret, '', `${form.purpose}: key id`, keyIdBytes)),
      secret,
    }))
  }

  /** @throws RangeError if the claims are too large for a token */
  seal(claims: Claims): string {
    const { prefix, maxChars } = this.#form
    const current = this.#secrets[0]
    if (current === undefined) throw new Error('there is no secret to seal with')
    const day = Math.floor(claims.iat / daySeconds)
    const header = Buffer.alloc(headerBytes)
    header.writeUInt8(version, 0)
    current.id.copy(header, 1)
    header.writeUInt16BE(day, 1 + keyIdBytes)
    const nonce = randomBytes(nonceBytes)
    const cipher = createCipheriv('aes-256-gcm', this.#dayKey(current, day), nonce).setAAD(header)
    const sealed = [header, nonce, cipher.update(JSON.stringify(claims), 'utf8'), cipher.final()]
    const token = prefix + Buffer.concat([...sealed, cipher.getAuthTag()]).toString('base64url')
    if (token.length > maxChars) throw new RangeError('the claims are too large for a token')
    return token
  }

  /** Returns undefined if the token was not sealed with one of the secrets, or was changed. */
  open(token: string): Claims | undefined {
    const { prefix, maxChars, schema } = this.#form
    if (!token.startsWith(prefix) || token.length > maxChars) return undefined
    const bytes = Buffer.from(token.slice(prefix.length), 'base64url')
    // Text that decodes to the same bytes is not another form of the token.
    if (bytes.toString('base64url') !== token.slice(prefix.length)) return undefined
    if (bytes.byteLength <= headerBytes + nonceBytes + tagBytes || bytes[0] !== version) return undefined
    const header = bytes.subarray(0, headerBytes)
    const id = header.subarray(1, 1 + keyIdBytes)
    const known = this.#secrets.find((one) => one.id.equals(id))
    if (known === undefined) return undefined
    const nonce = bytes.subarray(headerBytes, headerBytes + nonceBytes)
    const key = this.#dayKey(known, header.readUInt16BE(1 + keyIdBytes))
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
    decipher.setAAD(header).setAuthTag(bytes.subarray(-tagBytes))
    try {
      const text = decipher.update(bytes.subarray(headerBytes + nonceBytes, -tagBytes))
      const claims = Buffer.concat([text, decipher.final()]).toString('utf8')
      return schema.safeParse(jsonOf(claims)).data
    } catch {
      return undefined
    }
  }

  #dayKey({ id, secret }: { id: Buffer; secret: string | Uint8Array }, day: number): Buffer {
    const name = `${id.toString('hex')} ${day}`
    let key = this.#dayKeys.get(name)
    if (key === undefined) {
      key = Buffer.from(hkdfSync('sha256', secret, '', `${this.#form.purpose}: day ${day}`, 32))
      this.#dayKeys.set(name, key)
    }
    return key
  }
}

/** Seals the exchanged tokens of the embedded OAuth server. */
export class SealedTokens extends Seal<ExchangedClaims> {
  /** @param secrets the first one seals, and all of them open */
  constructor(secrets: readonly string[]) {
    super(exchangedForm, secrets)
  }
}

/** The id under which a bearer token is stored. Only its hash is stored, so a copy of the database grants no access. */
export function storedId(token: string): string {
  return hash('sha256', token, 'base64url')
}
