import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { assignDatabase, holdsData, moveAgent, signOfLife } from '@parley/engine/migration/mongodb/move'
import { ownDatabases } from '@parley/engine/store/mongodb/own-database'
import { DatabaseRefused } from '@parley/kit/database/errors'
import { connectMongodb, type MongodbDatabase } from '@parley/kit/database/mongodb/database'
import type { Log } from '@parley/kit/process/log'
import { type Db, MongoAPIError, MongoError, MongoServerError } from 'mongodb'
import { z } from 'zod'
import type { Claims } from '../../store/claims.ts'
import { databaseNameFor, type User, withDatabase } from './agent-url.ts'

export interface AgentDatabasesOptions {
  /** STORE_URL of the gateway. */
  url: string
  /** Whether each agent gets its own user. */
  withUsers: boolean
  claims: Claims
  /** Ends the waits of `urlFor`. */
  signal: AbortSignal
  /** How long a store has to be unchanged until no process uses it. Default 6 s. Processes change it each second. */
  quietMs?: number
  /** How long to wait for another gateway that moves the data, and for the end of the agent's other processes. Default 60 s. */
  waitMs?: number
  /** How long a gateway holds the claim to move the data of an agent without renewing it. Default 30 s. */
  claimMs?: number
  /** How long the users of a gateway exist after it has last claimed them. Default 1 h. */
  userMs?: number
  log: Log
}

export interface SupervisedAgent {
  name: string
  agentId: string
}

/** How long the end of the gateway waits for a server that does not answer. */
const dropLimitMs = 5000
/** How long a gateway claims the users of another one to drop them. */
const dropClaimMs = 60_000
const userPattern = /^parley-[0-9a-f]{16}$/
const userClaim = (name: string) => `MongoDB user ${name}`
const usersSchema = z.object({ users: z.array(z.object({ user: z.string() })) })
const unauthorized = 13
const userNotFound = 11
const userExists = 51_003
/** Errors of a server that is starting, stopping, overloaded or no longer the primary (the driver's retryable errors). */
const temporary = new Set([
  6, 7, 50, 64, 89, 91, 112, 134, 189, 262, 9001, 10_107, 11_600, 11_602, 13_435, 13_436,
])

/**
 * Gives each supervised agent a MongoDB database, with the documents that the gateway's database contained, and a user
 * with access to only this database. The passwords are in no file and no database: each start of a gateway creates other users.
 */
export class AgentDatabases implements AsyncDisposable {
  /** The protections that the server does not offer, and what would add them. */
  readonly missing: string[] = []
  readonly #options: AgentDatabasesOptions
  readonly #database: MongodbDatabase
  /** Each start has other users, so gateways with copies of one DATA_DIR do not replace each other's passwords. */
  readonly #userName = `parley-${randomBytes(8).toString('hex')}`
  readonly #holder = randomUUID()
  /** Whether the user of STORE_URL may use other databases and create users. */
  #mayUseOthers = false
  #createsUsers = false
  readonly #urls = new Map<string, Promise<string>>()
  /** The user that this gateway has created in each database. */
  readonly #granted = new Map<string, User>()
  readonly #closing = new AbortController()
  /** Aborts when the gateway stops. */
  readonly #signal: AbortSignal
  #renewTimer: NodeJS.Timeout | undefined
  #renewedAt = 0

  private constructor(options: AgentDatabasesOptions, database: MongodbDatabase) {
    this.#options = options
    this.#database = database
    this.#signal = AbortSignal.any([options.signal, this.#closing.signal])
  }

  /** Tries what the server offers. @throws DatabaseRefused if it does not answer */
  static async open(options: AgentDatabasesOptions): Promise<AgentDatabases> {
    await using stack = new AsyncDisposableStack()
    const database = stack.use(await connectMongodb({ url: options.url, poolMax: 8 }))
    const databases = new AgentDatabases(options, database)
    await databases.#try()
    stack.move()
    return databases
  }

  /** Resolves with the URL of the agent's database when it contains all data of the agent. */
  urlFor(agent: SupervisedAgent): Promise<string> {
    const known = this.#urls.get(agent.agentId)
    if (known !== undefined) return known
    const made = this.#open(agent)
    this.#urls.set(agent.agentId, made)
    made.catch(() => this.#urls.delete(agent.agentId))
    return made
  }

  async #try(): Promise<void> {
    const { withUsers } = this.#options
    const database = this.#trialDatabase
    const reason = await this.#otherDatabaseFailure(database)
    this.#mayUseOthers = reason === undefined
    if (reason !== undefined) {
      this.missing.push(
        `a MongoDB database and user per agent (${reason}): agents share one database, in which each of them can read all tasks`,
      )
      return
    }
    if (!withUsers) return
    await this.#claimUsers()
    const without = await this.#userFailure(database)
    this.#createsUsers = without === undefined
    if (without === undefined) await this.#keepUsers()
    else
      this.missing.push(
        `a MongoDB user per agent (${without}): each agent has its own database, but can read the others with the user of STORE_URL`,
      )
  }

  get #trialDatabase(): string {
    return databaseNameFor(this.#base, { name: 'trial', agentId: 'trial' })
  }

  get #base(): string {
    return this.#database.db.databaseName
  }

  /** Returns why the user of STORE_URL cannot use another database. */
  async #otherDatabaseFailure(name: string): Promise<string | undefined> {
    try {
      const trial = this.#database.client.db(name).collection(this.#userName)
      await trial.insertOne({})
      await trial.drop()
      return undefined
    } catch (error) {
      if (codeOf(error) === unauthorized)
        return `the user of STORE_URL may use only ${this.#base}: grant it readWriteAnyDatabase`
      return `the server refuses a second database: ${firstLine(this.#refusalIn(error))}`
    }
  }

  /** Returns why the server cannot confine users, after it has tried one. */
  async #userFailure(database: string): Promise<string | undefined> {
    try {
      if (await this.#canRead(database, null))
        return `the server at ${this.#where} does not enforce roles: it gives data to clients without a user`
      if (await this.#canRead(database, await this.#createUser(database, this.#newUser())))
        return `the server at ${this.#where} does not enforce roles: a user of one database can read the others`
      return undefined
    } catch (error) {
      if (codeOf(error) === unauthorized)
        return 'the user of STORE_URL may not create users: grant it userAdminAnyDatabase'
      return `the server at ${this.#where} refuses a user with the role readWrite: ${firstLine(this.#refusalIn(error))}`
    } finally {
      await this.#dropUser(database).catch(() => undefined)
    }
  }

  /**
   * Returns the error if it shows that the server lacks something. After a temporary failure, agents would otherwise get the
   * user of STORE_URL. @throws DatabaseRefused after a temporary failure
   */
  #refusalIn(error: unknown): unknown {
    const found = error instanceof DatabaseRefused ? (error.cause ?? error) : error
    const isTemporary =
      found instanceof MongoServerError
        ? temporary.has(Number(found.code))
        : found instanceof MongoError && !(found instanceof MongoAPIError)
    // Users of agents connect without the gateway's certificate, which the server may require.
    if (!isTemporary || this.#database.client.options.tlsCertificateKeyFile !== undefined) return found
    throw new DatabaseRefused(
      `The MongoDB server at ${this.#where} stopped answering while the gateway tried what it offers for agents. Start the gateway again.`,
      { cause: found },
    )
  }

  get #where(): string {
    return this.#database.client.options.hosts.map(String).join(',')
  }

  #urlAs(database: string, as: User | null): string {
    return withDatabase(this.#options.url, { database, authSource: database, as })
  }

  /**
   * Whether a user, or with null a client without one, can read the gateway's database.
   * @throws DatabaseRefused or MongoError if a user cannot read its own database
   */
  async #canRead(database: string, as: User | null): Promise<boolean> {
    try {
      await using own = await connectMongodb({ url: this.#urlAs(database, as), poolMax: 1 })
      if (as !== null) await readOne(own.db)
      return await readOne(own.client.db(this.#base)).then(
        () => true,
        (error: unknown) => {
          if (codeOf(error) === unauthorized) return false
          throw error
        },
      )
    } catch (error) {
      if (as !== null) throw error
      this.#refusalIn(error)
      return false
    }
  }

  #newUser(): User {
    return { name: this.#userName, password: randomBytes(24).toString('base64url') }
  }

  async #createUser(database: string, user: User): Promise<User> {
    const rights = { pwd: user.password, roles: [{ role: 'readWrite', db: database }] }
    const db = this.#database.client.db(database)
    try {
      await db.command({ createUser: user.name, ...rights })
    } catch (error) {
      if (codeOf(error) !== userExists) throw error
      await db.command({ updateUser: user.name, ...rights })
    }
    return user
  }

  async #dropUser(database: string, name = this.#userName): Promise<void> {
    await this.#database.client
      .db(database)
      .command({ dropUser: name })
      .catch((error: unknown) => {
        if (codeOf(error) !== userNotFound) throw error
      })
  }

  get #userMs(): number {
    return this.#options.userMs ?? 3_600_000
  }

  async #claimUsers(): Promise<void> {
    const sentAt = Date.now()
    if (await this.#options.claims.hold(userClaim(this.#userName), this.#holder, this.#userMs))
      this.#renewedAt = sentAt
  }

  /** Renews the claim to its users, and drops those of gateways that were killed. */
  async #keepUsers(): Promise<void> {
    try {
      const last = this.#renewedAt
      await this.#claimUsers()
      // Another gateway may have dropped the users meanwhile.
      if (this.#renewedAt - last > this.#userMs)
        for (const [database, user] of this.#granted) await this.#createUser(database, user)
      await this.#dropAbandonedUsers()
    } catch (error) {
      this.#options.log.warn({ err: error }, 'MongoDB users of agents could not be renewed or removed')
    }
    if (this.#signal.aborted) return
    this.#renewTimer = setTimeout(() => void this.#keepUsers(), this.#userMs / 12).unref()
  }

  /** Drops the users that no gateway has claimed for a time. */
  async #dropAbandonedUsers(): Promise<void> {
    const { claims } = this.#options
    const own = await ownDatabases(this.#database.db).find().toArray()
    const abandoned = new Map([[this.#userName, false]])
    for (const database of new Set([this.#trialDatabase, ...own.map((one) => one.database)])) {
      const { users } = usersSchema.parse(await this.#database.client.db(database).command({ usersInfo: 1 }))
      for (const { user } of users.filter((one) => userPattern.test(one.user))) {
        const isAbandoned =
          abandoned.get(user) ?? (await claims.hold(userClaim(user), this.#holder, dropClaimMs))
        abandoned.set(user, isAbandoned)
        if (isAbandoned) await this.#dropUser(database, user)
      }
    }
  }

  async #open(agent: SupervisedAgent): Promise<string> {
    const { db, client } = this.#database
    if (!this.#mayUseOthers) {
      const known = await ownDatabases(db).findOne({ _id: agent.agentId, agent_id: agent.agentId })
      if (known === null) return this.#options.url
      throw new Error(
        `its data is in the database ${known.database}, which the user of STORE_URL may not use: grant it readWriteAnyDatabase`,
      )
    }
    const database = databaseNameFor(this.#base, agent)
    const { database: own } = await assignDatabase(db, { ...agent, database })
    await this.#move(agent, own)
    if (!this.#createsUsers) {
      const authSource = client.options.credentials?.source
      return withDatabase(this.#options.url, { database: own, authSource })
    }
    const user = this.#newUser()
    this.#granted.set(own, user)
    await this.#createUser(own, user)
    if (await this.#canRead(own, user)) throw new Error(`its MongoDB user can read ${this.#base}`)
    return this.#urlAs(own, user)
  }

  /** Moves the data of the agent to its database. Only one gateway at a time does so. */
  async #move(agent: SupervisedAgent, database: string): Promise<void> {
    const { log } = this.#options
    using claim = await this.#claim(`move ${agent.agentId}`)
    const signal = AbortSignal.any([claim.signal, this.#signal])
    await this.#waitForOthers(agent, signal)
    const { db: from, client } = this.#database
    const onStep = (step: string, documents: number) =>
      log.debug({ agent: agent.name, step, documents }, 'moving data of an agent')
    const moved = await moveAgent({ agentId: agent.agentId, from, to: client.db(database), signal, onStep })
    if (moved > 0)
      log.info(
        { agent: agent.name, database, documents: moved },
        'moved the data of an agent to its own database',
      )
  }

  /**
   * Waits until no other gateway holds the claim. The signal aborts before another one can take it over.
   * @throws Error at the deadline, and the reason of the gateway's signal
   */
  async #claim(name: string): Promise<{ signal: AbortSignal } & Disposable> {
    const { claims, claimMs = 30_000, waitMs = 60_000 } = this.#options
    const signal = this.#signal
    const hold = () => claims.hold(name, this.#holder, claimMs)
    const end = performance.now() + waitMs
    signal.throwIfAborted()
    let heldAt = performance.now()
    for (; !(await hold()); heldAt = performance.now()) {
      if (performance.now() > end)
        throw new Error(
          `another gateway on ${this.#base} has been moving its data for more than ${waitMs / 1000} s: wait until that gateway has finished, or stop it (docs/guides/isolation.md#mongodb)`,
        )
      await wait(claimMs / 30, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
    const lost = new AbortController()
    const renew = async () => {
      const sentAt = performance.now()
      if (sentAt - heldAt > claimMs / 2) lost.abort(new Error('the claim to move its data was lost'))
      else if (await hold().catch(() => false)) heldAt = sentAt
    }
    const timer = setInterval(() => void renew(), claimMs / 10)
    return {
      signal: lost.signal,
      [Symbol.dispose]: () => {
        clearInterval(timer)
        claims.hold(name, this.#holder, 0).catch(() => undefined)
      },
    }
  }

  /** A process that still runs on the shared database could write there after the copy. */
  async #waitForOthers({ name, agentId }: SupervisedAgent, signal: AbortSignal): Promise<void> {
    const { quietMs = 6000, waitMs = 60_000, log } = this.#options
    const { db } = this.#database
    if (!(await holdsData(db, agentId))) return
    log.info({ agent: name }, 'waiting until no process of the agent uses the shared database')
    const end = performance.now() + waitMs
    let sign = await signOfLife(db, agentId)
    for (let since = performance.now(); performance.now() - since < quietMs; ) {
      await wait(quietMs / 12)
      signal.throwIfAborted()
      const next = await signOfLife(db, agentId)
      if (next !== sign) since = performance.now()
      sign = next
      if (performance.now() > end)
        throw new Error(
          `its data has to be moved from ${this.#base} to its own database, but another process of this agent runs: stop it (docs/guides/isolation.md#mongodb)`,
        )
    }
  }

  /** Drops the users that it created. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error('the gateway stops'))
    clearTimeout(this.#renewTimer)
    const drop = async () => {
      const dropped = await Promise.allSettled([...this.#granted.keys()].map((name) => this.#dropUser(name)))
      if (this.#renewedAt > 0 && dropped.every(({ status }) => status === 'fulfilled'))
        await this.#options.claims.hold(userClaim(this.#userName), this.#holder, 0).catch(() => undefined)
    }
    const dropped = drop()
    await Promise.race([dropped, wait(dropLimitMs, undefined, { ref: false })])
    await this.#database[Symbol.asyncDispose]()
  }
}

const readOne = (db: Db) => db.collection<{ _id: string }>('tasks').findOne({ _id: 'trial' })

const codeOf = (error: unknown) =>
  error instanceof MongoServerError && typeof error.code === 'number' ? error.code : undefined

function firstLine(error: unknown): string {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? ''
}
