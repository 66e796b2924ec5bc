import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { crc32 } from 'node:zlib'
import { KeyedMutex } from '@parley/kit/process/keyed-mutex'
import { z } from 'zod'
import type { OAuthStore } from '../oauth-store.ts'

/** The model of the records of long-lived keys. */
export const keyModel = 'ClientKey'
const keysPerClientMax = 20
const prefix = 'plk_'
/** 256 bits in base62 have up to 43 digits, and the checksum has six. */
const keyForm = /^plk_([0-9A-Za-z]{43})([0-9A-Za-z]{6})$/
const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

const keyRecord = z.object({
  clientId: z.string(),
  hash: z.string(),
  name: z.string(),
  scope: z.string(),
  aud: z.string().optional(),
  /** Seconds since 1970. */
  iat: z.number(),
  exp: z.number(),
  /** The client that created the key, if it is another one. */
  createdBy: z.string().optional(),
})
export type KeyRecord = z.infer<typeof keyRecord>
const listedRecord = keyRecord.extend({ id: z.string() })

/** A key as shown to its owner, without the secret. */
export interface LongLivedKey extends Omit<KeyRecord, 'hash'> {
  id: string
}

/** Returns a new key: `plk_`, 256 random bits and a checksum, so that typing errors and leaks can be recognized. */
export function newKey(): string {
  const secret = inBase62(BigInt(`0x${randomBytes(32).toString('hex')}`), 43)
  return `${prefix}${secret}${checksumOf(secret)}`
}

/** Whether the text has the form and the checksum of a key. */
export function isKey(text: string): boolean {
  const [, secret, checksum] = keyForm.exec(text) ?? []
  return secret !== undefined && checksumOf(secret) === checksum
}

/** The id of the key's record, which reveals nothing about the key. */
export function keyIdOf(key: string): string {
  return hashOf(key).toString('hex').slice(0, 32)
}

/** Returns the record of the key, which may have expired. */
export async function findKey(store: Pick<OAuthStore, 'find'>, key: string): Promise<KeyRecord | undefined> {
  const found = keyRecord.safeParse(await store.find(keyModel, keyIdOf(key))).data
  if (found === undefined) return undefined
  return timingSafeEqual(hashOf(found.hash), hashOf(hashOf(key).toString('base64url'))) ? found : undefined
}

/** Creates, lists and revokes long-lived keys. Only their hashes are stored. */
export class LongLivedKeys {
  readonly #store: OAuthStore
  readonly #mutex = new KeyedMutex()

  constructor(store: OAuthStore) {
    this.#store = store
  }

  /** @returns the key, which cannot be read later, or undefined if the client has too many keys */
  create(
    options: Omit<KeyRecord, 'hash' | 'iat'>,
  ): Promise<{ key: string; record: LongLivedKey } | undefined> {
    return this.#mutex.run([options.clientId], () => this.#create(options))
  }

  async #create(
    options: Omit<KeyRecord, 'hash' | 'iat'>,
  ): Promise<{ key: string; record: LongLivedKey } | undefined> {
    const { clientId, exp } = options
    if ((await this.list(clientId)).length >= keysPerClientMax) return undefined
    const key = newKey()
    const iat = Math.floor(Date.now() / 1000)
    const record = { ...options, hash: hashOf(key).toString('base64url'), iat, id: keyIdOf(key) }
    await this.#store.insert({ model: keyModel, id: record.id, payload: record, clientId, expiresAt: exp })
    return { key, record: shown(record) }
  }

  /** Lists the keys of a client, or of all clients, without expired ones, in order of their creation. */
  async list(clientId?: string): Promise<LongLivedKey[]> {
    const found = await this.#store.list(keyModel, clientId)
    const keys = found.flatMap((payload) => listedRecord.safeParse(payload).data ?? [])
    return keys
      .filter(({ exp }) => exp * 1000 > Date.now())
      .toSorted((a, b) => a.iat - b.iat)
      .map(shown)
  }

  async find(id: string): Promise<LongLivedKey | undefined> {
    const found = listedRecord.safeParse(await this.#store.find(keyModel, id)).data
    return found && shown(found)
  }

  /** Revokes a key if it belongs to the client. Returns false otherwise. */
  async revokeOwn(key: string, clientId: string): Promise<boolean> {
    if ((await findKey(this.#store, key))?.clientId !== clientId) return false
    await this.revoke(keyIdOf(key))
    return true
  }

  async revoke(id: string): Promise<void> {
    await this.#store.destroy(keyModel, id)
  }
}

function shown({ hash: _hash, ...key }: KeyRecord & { id: string }): LongLivedKey {
  return key
}

function checksumOf(secret: string): string {
  return inBase62(BigInt(crc32(secret)), 6)
}

function inBase62(value: bigint, length: number): string {
  let text = ''
  for (let rest = value; text.length < length; rest /= 62n) text = (digits[Number(rest % 62n)] ?? '') + text
  return text
}

function hashOf(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
