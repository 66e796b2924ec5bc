import { randomBytes } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import { z } from 'zod'
import { newSecret, newSignInCode } from '../key-files.ts'
import type { OAuthStore } from '../oauth-store.ts'
import { hashPassword, isPassword, storedPassword } from './passwords.ts'

export type Role = 'caller' | 'operator'

const storedAccount = z.object({
  name: z.string(),
  role: z.enum(['caller', 'operator']),
  /** The client for which the person acts. It owns the tasks that the person creates. */
  clientId: z.string(),
  /** Whether the client was created with the account, and is removed with it. */
  ownsClient: z.boolean(),
  password: storedPassword,
  /** Changes when all sessions of the account must end. */
  epoch: z.string(),
  /** Seconds since 1970. */
  createdAt: z.number(),
  lastSignIn: z.number().optional(),
  disabled: z.boolean(),
})
type StoredAccount = z.infer<typeof storedAccount>

/** A person who may sign in to the console. */
export type Account = Omit<StoredAccount, 'password'>

/** The OAuth clients of accounts. With an external OAuth server, the gateway has none, and only the ids are used. */
export interface AccountClients {
  /** Creates the client of an account. */
  create(clientId: string, account: Pick<Account, 'name' | 'role'>): Promise<void>
  exists(clientId: string): Promise<boolean>
  remove(clientId: string): Promise<void>
}

type Store = Pick<OAuthStore, 'find' | 'insert' | 'exchange' | 'list' | 'destroy'>

const model = 'ConsoleAccount'
const attemptsMax = 20

/** The accounts of people who may sign in to the console (spec/operator.md#accounts). Their records are encrypted. */
export class Accounts {
  readonly #store: Store
  readonly #clients: AccountClients | undefined

  constructor(store: Store, clients?: AccountClients) {
    this.#store = store
    this.#clients = clients
  }

  /**
   * Creates an account with a generated password, which is returned only here. An account whose name was used before has another
   * client, and none of the tasks of its predecessor.
   * @param clientId an existing client for which the person acts. By default, a client is created.
   * @throws ParleyError Conflict if the account exists, NotFound if the client does not
   */
  async add(
    { name, role }: Pick<Account, 'name' | 'role'>,
    clientId?: string,
  ): Promise<{ account: Account; password: string }> {
    if ((await this.find(name)) !== undefined) throw exists(name)
    if (clientId !== undefined && (await this.#clients?.exists(clientId)) === false) throw noClient()
    // Random, because the tasks of a removed account keep their owner, and a name can be used again.
    const own = `console:${name}:${randomBytes(5).toString('hex')}`
    if (clientId === undefined) await this.#clients?.create(own, { name, role })
    const password = newSignInCode()
    const account: Account = {
      name,
      role,
      clientId: clientId ?? own,
      ownsClient: clientId === undefined,
      epoch: newSecret(),
      createdAt: seconds(),
      disabled: false,
    }
    const payload = { ...account, password: await hashPassword(password) }
    if (await this.#store.insert({ model, id: name, payload })) return { account, password }
    // Another gateway has added the account at the same time.
    if (account.ownsClient) await this.#clients?.remove(own)
    throw exists(name)
  }

  async list(): Promise<Account[]> {
    const payloads = await this.#store.list(model)
    return payloads
      .map((payload) => withoutPassword(storedAccount.parse(payload)))
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  async find(name: string): Promise<Account | undefined> {
    const stored = await this.#read(name)
    return stored && withoutPassword(stored)
  }

  /** Returns the account if the password is right and the account is not disabled. */
  async check(name: string, password: string): Promise<Account | undefined> {
    const stored = await this.#read(name)
    const isRight = await isPassword(password, stored?.password)
    return isRight && stored?.disabled === false ? withoutPassword(stored) : undefined
  }

  /** @returns undefined if there is no such account */
  async resetPassword(name: string): Promise<{ account: Account; password: string } | undefined> {
    const password = newSignInCode()
    const hashed = await hashPassword(password)
    const account = await this.#change(name, { password: hashed, epoch: newSecret() })
    return account && { account, password }
  }

  setDisabled(name: string, disabled: boolean): Promise<Account | undefined> {
    return this.#change(name, disabled ? { disabled, epoch: newSecret() } : { disabled })
  }

  /** Records the time of a sign-in. */
  async signedIn(name: string): Promise<void> {
    await this.#change(name, { lastSignIn: seconds() })
  }

  /** Removes the account, and its client if that was created with it. Returns undefined if there is no such account. */
  async remove(name: string): Promise<Account | undefined> {
    const account = await this.find(name)
    if (account === undefined) return undefined
    await this.#store.destroy(model, name)
    if (account.ownsClient) await this.#clients?.remove(account.clientId)
    return account
  }

  async #read(name: string): Promise<StoredAccount | undefined> {
    const payload = await this.#store.find(model, name)
    return payload && storedAccount.parse(payload)
  }

  async #change(name: string, change: Partial<StoredAccount>): Promise<Account | undefined> {
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const was = await this.#store.find(model, name)
      if (was === undefined) return undefined
      const next = { ...storedAccount.parse(was), ...change }
      if (await this.#store.exchange(model, name, was, next)) return withoutPassword(next)
    }
    throw new ParleyError('Unavailable', { message: 'Too many concurrent changes of this account' })
  }
}

function withoutPassword({ password: _password, ...account }: StoredAccount): Account {
  return account
}

const seconds = () => Math.floor(Date.now() / 1000)

const exists = (name: string) =>
  new ParleyError('Conflict', {
    message: `There is an account ${name} already: choose another name, or reset its password`,
    data: { reason: 'account_exists' },
  })

const noClient = () =>
  new ParleyError('NotFound', {
    message: 'Client not found: npx parley clients lists the ids',
    data: { reason: 'client' },
  })
