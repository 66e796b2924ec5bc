import { randomBytes } from 'node:crypto'
import { type DocumentDatabase, type Documents, declareCollection } from '@parley/kit/database/documents'
import { untilDone } from '@parley/kit/database/retry'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'
import { CipherKey, derivedBytes, keyBytes } from './cipher-key.ts'
import { KeysRefused, type MasterKey, type MasterKeys } from './master-key.ts'

/** Encrypts the records of a store. */
export interface RecordCipher {
  /** Encrypts with the current data key. @param context the kind and key of the record */
  seal(text: string, context: string): Promise<{ dataKey: string; sealed: string }>
  /**
   * Decrypts a stored text. While plaintext records are still accepted, it returns those unchanged.
   * @param kind the kind of the record, for the error
   * @throws UnreadableRecord
   */
  open(stored: string, context: string, kind: string): Promise<string>
  /** Returns a keyed hash for look-ups by a value that must not be stored. */
  hash(purpose: string, value: string): Promise<string>
  /** Whether the store may contain plaintext records of an earlier version. */
  acceptsPlaintext(): Promise<boolean>
}

/** A stored record was changed outside Parley, or was encrypted with a key that is no longer known. */
export class UnreadableRecord extends Error {
  override readonly name = 'UnreadableRecord'

  constructor(kind: string) {
    super(
      `A stored record (${kind}) cannot be decrypted: it was changed outside Parley, or its data key is missing. Restore the database from a backup, or remove the record.`,
    )
  }
}

const content = z.object({
  /** Identifies the ring; it never changes. */
  id: z.string().min(1),
  /** The id of the data key that encrypts new records. */
  current: z.string().min(1),
  keys: z
    .array(
      z.object({
        id: z.string().regex(/^[\w-]{8}$/),
        key: z.base64url(),
        /** Milliseconds since 1970. */
        created: z.number(),
        /** When another key became current; not set for the current key. */
        retired: z.number().optional(),
      }),
    )
    .min(1),
  /** The key of `hash`. It is not replaced, because stored hashes could then not be found. */
  hashKey: z.base64url(),
  plaintext: z.enum(['accepted', 'refused']),
})
export type RingContent = z.infer<typeof content>

const document = z.object({
  format: z.literal(1),
  /** The encrypted content, by the id of the master key. There are two while the master key is being replaced. */
  copies: z.record(z.string(), z.string()),
})

const declaration = declareCollection({
  name: 'gateway_keys',
  fields: { name: 'key', body: 'text' },
  key: ['name'],
  indexes: {},
})
export const keyRingCollection = declaration

/** How old the content may be when a record is encrypted, if other gateways can change the ring. */
export const freshMs = 10_000
const name = 'oauth'
const context = (master: MasterKey) => `parley key ring ${master.id}`

interface Unlocked {
  body: string
  content: RingContent
  keys: Map<string, CipherKey>
  current: CipherKey
  hashKey: CipherKey
  readAt: number
}

/** Returns whether the database has a key ring, so that its records are encrypted. */
export async function hasKeyRing(database: DocumentDatabase): Promise<boolean> {
  return (await database.collection(declaration).get({ name })) !== undefined
}

/** The data keys of a deployment, encrypted with the master key in the database that also contains the records. */
export class KeyRing implements RecordCipher {
  readonly #documents: Documents<typeof declaration.fields, 'name', never>
  readonly #shared: boolean
  #masters: MasterKeys
  #unlocked: Unlocked
  #reading: Promise<void> | undefined

  private constructor(database: DocumentDatabase, masters: MasterKeys, unlocked: Unlocked) {
    this.#documents = database.collection(declaration)
    this.#shared = database.shared
    this.#masters = masters
    this.#unlocked = unlocked
  }

  /**
   * Opens the ring, or creates it in a database without one. If several gateways do so, all use the ring of the first.
   * @throws KeysRefused if the ring is damaged or was encrypted with another master key
   */
  static async open(database: DocumentDatabase, masters: MasterKeys): Promise<KeyRing> {
    const documents = database.collection(declaration)
    const found = (await documents.get({ name }))?.body ?? (await create(documents, masters.current))
    const ring = new KeyRing(database, masters, unlock(found, masters))
    if (!ring.masterIds.includes(masters.current.id)) await ring.change((before) => before)
    return ring
  }

  /** The content without keys. */
  get summary(): {
    id: string
    plaintext: boolean
    keys: { id: string; created: number; current: boolean }[]
  } {
    const { id, current, keys, plaintext } = this.#unlocked.content
    const listed = keys.map((one) => ({ id: one.id, created: one.created, current: one.id === current }))
    return { id, plaintext: plaintext === 'accepted', keys: listed }
  }

  /** The ids of the master keys that can decrypt the ring. */
  get masterIds(): string[] {
    return Object.keys(copiesOf(this.#unlocked.body))
  }

  async seal(text: string, recordContext: string): Promise<{ dataKey: string; sealed: string }> {
    if (this.#shared && performance.now() - this.#unlocked.readAt > freshMs) await this.refresh()
    const { content: ring, current } = this.#unlocked
    return { dataKey: ring.current, sealed: `${marker}${ring.current}.${current.seal(text, recordContext)}` }
  }

  async open(stored: string, recordContext: string, kind: string): Promise<string> {
    if (!stored.startsWith(marker)) {
      if (stored.startsWith('{') && (await this.acceptsPlaintext())) return stored
      throw new UnreadableRecord(kind)
    }
    const id = stored.slice(marker.length, marker.length + dataKeyIdChars)
    // Another gateway may have added the key since the ring was read.
    if (!this.#unlocked.keys.has(id) && this.#shared) await this.refresh()
    const sealed = stored.slice(marker.length + dataKeyIdChars + 1)
    const text = this.#unlocked.keys.get(id)?.open(sealed, recordContext)
    if (text === undefined) throw new UnreadableRecord(kind)
    return text
  }

  async hash(purpose: string, value: string): Promise<string> {
    return this.#unlocked.hashKey.hash(`${purpose}\n${value}`)
  }

  async acceptsPlaintext(): Promise<boolean> {
    return this.#unlocked.content.plaintext === 'accepted'
  }

  /** Reads the ring again. Concurrent calls share one read. */
  refresh(): Promise<void> {
    this.#reading ??= this.#read().finally(() => {
      this.#reading = undefined
    })
    return this.#reading
  }

  /** Adds a data key and makes it current. Records under earlier keys stay readable. */
  async addDataKey(now = Date.now()): Promise<void> {
    const added = { id: newId(), key: newKey(), created: now }
    await this.change((before) => ({
      ...before,
      current: added.id,
      keys: [...before.keys.map((one) => ({ retired: now, ...one })), added],
    }))
  }

  /** Removes data keys that no record uses. The current one stays. */
  async removeDataKeys(ids: readonly string[]): Promise<void> {
    if (ids.length === 0) return
    const isLeft = ({ id }: { id: string }, { current }: RingContent) => id === current || !ids.includes(id)
    await this.change((before) => ({ ...before, keys: before.keys.filter((one) => isLeft(one, before)) }))
  }

  /** Data keys that were replaced before this time. */
  retiredBefore(time: number): string[] {
    return this.#unlocked.content.keys.flatMap(({ id, retired = Infinity }) => (retired <= time ? [id] : []))
  }

  async refusePlaintext(): Promise<void> {
    if (await this.acceptsPlaintext()) await this.change((before) => ({ ...before, plaintext: 'refused' }))
  }

  /** Uses other master keys from now on. The ring is encrypted with all of them. */
  async useMasters(masters: MasterKeys): Promise<void> {
    this.#masters = masters
    await this.change((before) => before)
  }

  /** Completes the replacement of the master key: only the current one can decrypt the ring from now on. */
  async dropOtherMasters(): Promise<void> {
    const { previous: _previous, ...masters } = this.#masters
    await this.change((before) => before, [masters.current])
    this.#masters = masters
  }

  /**
   * Changes the ring unless another gateway changes it first, and then tries again.
   * @throws KeysRefused if the ring is also encrypted with a master key that this gateway lacks
   */
  async change(to: (before: RingContent) => RingContent, masters?: readonly MasterKey[]): Promise<void> {
    await untilDone(async () => {
      const { current, previous } = this.#masters
      const known = previous === undefined ? [current] : [current, previous]
      const missing = this.masterIds.filter((id) => known.every((one) => one.id !== id))
      if (masters === undefined && missing.length > 0) throw changingMaster(missing)
      const before = this.#unlocked
      const after = bodyOf(to(before.content), masters ?? known)
      const written = await this.#documents.update({ name }, { body: after }, { body: before.body })
      await this.#read()
      return written === 'written' ? true : undefined
    })
  }

  async #read(): Promise<void> {
    const body = (await this.#documents.get({ name }))?.body
    if (body === undefined) throw damaged('is missing')
    if (body === this.#unlocked.body) this.#unlocked.readAt = performance.now()
    else this.#unlocked = unlock(body, this.#masters)
  }
}

/** Encrypted texts begin with the format, the id of the data key and dots: `parley1.AbCdEfGh.…`. */
const marker = 'parley1.'
const dataKeyIdChars = 8

const newId = () => randomBytes(6).toString('base64url')
const newKey = () => randomBytes(keyBytes).toString('base64url')

async function create(
  documents: Documents<typeof declaration.fields, 'name', never>,
  master: MasterKey,
): Promise<string> {
  const key = { id: newId(), key: newKey(), created: Date.now() }
  const ring: RingContent = {
    id: newId(),
    current: key.id,
    keys: [key],
    hashKey: newKey(),
    plaintext: 'accepted',
  }
  const body = bodyOf(ring, [master])
  if ((await documents.insert({ name, body })) === 'written') return body
  return (await documents.get({ name }))?.body ?? body
}

function bodyOf(ring: RingContent, masters: readonly MasterKey[]): string {
  const text = JSON.stringify(ring)
  const copies = masters.map((master) => [master.id, master.ringKey.seal(text, context(master))])
  return JSON.stringify({ format: 1, copies: Object.fromEntries(copies) })
}

function copiesOf(body: string): Record<string, string> {
  const parsed = document.safeParse(jsonOf(body))
  if (!parsed.success) throw damaged('is damaged')
  return parsed.data.copies
}

/** @throws KeysRefused */
function unlock(body: string, { current, previous, source }: MasterKeys): Unlocked {
  const copies = copiesOf(body)
  for (const master of previous === undefined ? [current] : [current, previous]) {
    const copy = copies[master.id]
    if (copy === undefined) continue
    const parsed = content.safeParse(jsonOf(master.ringKey.open(copy, context(master)) ?? ''))
    if (!parsed.success) throw damaged('is damaged')
    const keys = new Map(parsed.data.keys.map(({ id, key }) => [id, cipherKeyOf(key)]))
    const key = keys.get(parsed.data.current)
    if (key === undefined) throw damaged('is damaged')
    const hashKey = cipherKeyOf(parsed.data.hashKey)
    return { body, content: parsed.data, keys, current: key, hashKey, readAt: performance.now() }
  }
  throw wrongMasterKey('The database', Object.keys(copies), current.id, source)
}

/** Hashes and ciphertexts use separate keys, which are derived from the stored one. */
function cipherKeyOf(text: string): CipherKey {
  return new CipherKey(derivedBytes(Buffer.from(text, 'base64url'), 'parley data key'))
}

export function wrongMasterKey(
  what: string,
  needed: readonly string[],
  id: string,
  source: string,
): KeysRefused {
  return new KeysRefused(
    `${what} is encrypted with the master key ${needed.join(' or ')}, but the one in ${source} is ${id}. Nothing was changed. Provide the key that belongs to this data, in PARLEY_MASTER_KEY or as DATA_DIR/master.key; all gateways on one database use the same. If you are replacing the key, set PARLEY_MASTER_KEY_PREVIOUS to the earlier one.`,
  )
}

function damaged(how: string): KeysRefused {
  return new KeysRefused(
    `The key ring in the database (gateway_keys) ${how}. Nothing was changed. Restore the database from a backup: without the ring, the stored OAuth clients cannot be decrypted.`,
  )
}

function changingMaster(missing: readonly string[]): KeysRefused {
  return new KeysRefused(
    `The master key is being replaced, and this process lacks the key ${missing.join(', ')}. Complete the replacement first: run "parley keys rotate --master" with both keys.`,
  )
}
