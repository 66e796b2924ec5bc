import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { newSecret } from '../key-files.ts'
import type { OAuthStore } from '../oauth-store.ts'
import { hashed } from '../stored-buckets.ts'
import type { Account, Accounts } from './accounts.ts'

const storedSession = z.object({
  /** Names the session in lists. The cookie cannot be derived from it. */
  id: z.string(),
  account: z.string(),
  epoch: z.string(),
  csrf: z.string(),
  /** Seconds since 1970. */
  createdAt: z.number(),
  lastSeen: z.number(),
  expiresAt: z.number(),
  address: z.string().optional(),
  userAgent: z.string().optional(),
})
type StoredSession = z.infer<typeof storedSession>

/** A session of a person in a browser. */
export interface Session extends StoredSession {
  person: Account
}

/** The session ends after this time, even if it is in use. */
export const sessionMaxSeconds = 12 * 3600
/** The session ends if no request arrives during this time. */
export const sessionIdleSeconds = 3600
/** How precisely the time of the last request is stored. */
const touchSeconds = 60
const userAgentMaxChars = 200

type Store = Pick<OAuthStore, 'find' | 'insert' | 'exchange' | 'list' | 'destroy'>

const model = 'ConsoleSession'
/** The model of the records that name the record of a session by its id in lists. */
const indexModel = 'ConsoleSessionId'

/**
 * The sessions of the console. Only a hash of the cookie is stored, so a copy of the database opens no session. All
 * gateways on the store share the sessions, and each request reads the store, so that a revoked session ends immediately.
 */
export class Sessions {
  readonly #store: Store
  readonly #accounts: Pick<Accounts, 'find'>
  readonly #now: () => number
  /** Called when a session ends in this process, by the id of its record. */
  readonly #watchers = new Map<string, Set<() => void>>()

  /** @param now milliseconds since 1970 */
  constructor(store: Store, accounts: Pick<Accounts, 'find'>, now = Date.now) {
    this.#store = store
    this.#accounts = accounts
    this.#now = now
  }

  /** Returns the value of the cookie. */
  async create(
    { name, epoch }: Account,
    { address, userAgent }: { address?: string | undefined; userAgent?: string | undefined },
  ): Promise<string> {
    const cookie = newSecret()
    const now = this.#seconds()
    const payload: StoredSession = {
      id: randomBytes(9).toString('base64url').replace(/^-/, 'A'),
      account: name,
      epoch,
      csrf: newSecret(),
      createdAt: now,
      lastSeen: now,
      expiresAt: now + sessionMaxSeconds,
      ...(address !== undefined && { address }),
      ...(userAgent !== undefined && { userAgent: userAgent.slice(0, userAgentMaxChars) }),
    }
    const entry = { model, id: hashed(cookie), payload, expiresAt: payload.expiresAt }
    const { id, expiresAt } = payload
    await this.#store.insert({ model: indexModel, id, payload: { key: entry.id }, expiresAt })
    await this.#store.insert(entry)
    return cookie
  }

  /** Returns undefined for a session that has ended, or if its account was disabled, removed or changed. */
  async find(cookie: string): Promise<Session | undefined> {
    if (!/^[\w-]{43}$/.test(cookie)) return undefined
    const id = hashed(cookie)
    const was = await this.#store.find(model, id)
    if (was === undefined) return undefined
    const stored = storedSession.parse(was)
    const session = await this.#usable(stored)
    if (session === undefined) return undefined
    const now = this.#seconds()
    // If another request has changed the record, it has stored the time too.
    if (now - stored.lastSeen >= touchSeconds)
      await this.#store.exchange(model, id, was, { ...stored, lastSeen: now })
    return session
  }

  /** Whether the session is still usable. This is no use of the session. */
  async isOpen(cookie: string): Promise<boolean> {
    const was = await this.#store.find(model, hashed(cookie))
    return was !== undefined && (await this.#usable(storedSession.parse(was))) !== undefined
  }

  async end(cookie: string): Promise<void> {
    await this.#end(hashed(cookie))
  }

  /** Calls the function when the session is ended at this gateway. */
  watch(cookie: string, onEnd: () => void): Disposable {
    const id = hashed(cookie)
    const watchers = this.#watchers.get(id) ?? new Set()
    this.#watchers.set(id, watchers.add(onEnd))
    return {
      [Symbol.dispose]: () => {
        watchers.delete(onEnd)
        if (watchers.size === 0 && this.#watchers.get(id) === watchers) this.#watchers.delete(id)
      },
    }
  }

  /** Returns the usable sessions, those with the latest requests first. */
  async list(): Promise<Session[]> {
    const payloads = await this.#store.list(model)
    const sessions = await Promise.all(payloads.map((payload) => this.#usable(storedSession.parse(payload))))
    return sessions.filter((session) => session !== undefined).sort((a, b) => b.lastSeen - a.lastSeen)
  }

  /** Ends a session by its id in the list. Returns false if there is none. */
  async revoke(sessionId: string): Promise<boolean> {
    const found = await this.#store.find(indexModel, sessionId)
    if (found === undefined) return false
    return this.#end(String(found['key']))
  }

  /** Returns false if there is no such session. */
  async #end(id: string): Promise<boolean> {
    const found = await this.#store.find(model, id)
    if (found === undefined) return false
    await this.#store.destroy(model, id)
    await this.#store.destroy(indexModel, String(found['id']))
    for (const onEnd of this.#watchers.get(id) ?? []) onEnd()
    return true
  }

  async #usable(stored: StoredSession): Promise<Session | undefined> {
    const now = this.#seconds()
    if (stored.expiresAt <= now || stored.lastSeen + sessionIdleSeconds <= now) return undefined
    const person = await this.#accounts.find(stored.account)
    if (person === undefined || person.disabled || person.epoch !== stored.epoch) return undefined
    return { ...stored, person }
  }

  #seconds(): number {
    return Math.floor(this.#now() / 1000)
  }
}
