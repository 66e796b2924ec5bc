import {
  type Collection,
  type Db,
  MongoBulkWriteError,
  MongoClient,
  type MongoClientOptions,
  MongoError,
  MongoParseError,
  MongoServerError,
} from 'mongodb'
import { DatabaseRefused, unavailable } from '../errors.ts'
import { watchOver } from './watchdog.ts'

export interface MongodbDatabaseOptions {
  /** `mongodb://…/database`; what the operator set in it (credentials, TLS, replica set, pool) wins over the options below. */
  url: string
  /**
   * How long a connection is waited for, and then an answer: one that is dead without a word holds a place in the pool for so
   * long. Default 10,000 and 12,000.
   */
  poolTimeoutMs?: number
  socketTimeoutMs?: number
  /** How long a server is looked for. Default 5,000. */
  connectTimeoutMs?: number
  /** Connections at most, and those kept when there is little to do. Default 50 and 1. */
  poolMax?: number
  poolMin?: number
  /** For tests that look at what is asked: hears each command. */
  onCommand?: (command: Record<string, unknown>) => void
}

/** A MongoDB server that was asked who it is, and one database of it. */
export interface MongodbDatabase extends AsyncDisposable {
  readonly db: Db
  /** For tests that look at what is asked. */
  readonly client: MongoClient
}

/** While a server is away the driver looks for it so often; its own default is 10 s. */
const heartbeatMs = 1000

/** Older ones lack what the questions stand on, and are no longer maintained by their makers. */
const oldestMajor = 6

/**
 * Connects, and refuses what cannot work: no server, no right to use it, one that is too old, an address without database.
 * @throws DatabaseRefused with a sentence that holds neither password nor user
 */
export async function connectMongodb(options: MongodbDatabaseOptions): Promise<MongodbDatabase> {
  const { poolTimeoutMs = 10_000, socketTimeoutMs = 12_000, connectTimeoutMs = 5000 } = options
  const { poolMax = 50, poolMin = 1 } = options
  const where = hostsOf(options.url)
  const settings: MongoClientOptions = {
    appName: 'parley',
    waitQueueTimeoutMS: poolTimeoutMs,
    socketTimeoutMS: socketTimeoutMs,
    serverSelectionTimeoutMS: connectTimeoutMs,
    connectTimeoutMS: Math.ceil(connectTimeoutMs / 2),
    heartbeatFrequencyMS: heartbeatMs,
    maxPoolSize: poolMax,
    minPoolSize: poolMin,
    writeConcern: { w: 'majority', journal: true, wtimeoutMS: poolTimeoutMs },
    // An absent value in a filter would match all there is: it is an error of ours, never left out.
    ignoreUndefined: false,
    monitorCommands: options.onCommand !== undefined,
  }
  const open = (more: MongoClientOptions) => opened(options, { ...settings, ...more })
  try {
    const first = await open({ retryWrites: false })
    const hello = await first.db('admin').command({ hello: 1 })
    await refuseOld(first, where)
    // A standalone server knows no sessions for writes that are tried again; a replica set's and a router's are safe.
    const retries = hello['setName'] !== undefined || hello['msg'] === 'isdbgrid'
    if (!retries || /[?&]retryWrites=false\b/i.test(options.url)) return databaseOf(first)
    await first.close()
    const readConcern = { level: 'majority' } as const
    return databaseOf(await open({ retryWrites: true, readConcern }))
  } catch (error) {
    throw error instanceof DatabaseRefused ? error : refusal(where, error)
  }
}

async function opened(
  { url, onCommand }: MongodbDatabaseOptions,
  settings: MongoClientOptions,
): Promise<MongoClient> {
  const client = new MongoClient(url, withoutThoseIn(url, settings))
  client.on('commandStarted', ({ command }) => onCommand?.(command))
  try {
    return await client.connect()
  } catch (error) {
    await client.close()
    throw error
  }
}

/** The driver prefers its options to the address. */
function withoutThoseIn(url: string, settings: MongoClientOptions): MongoClientOptions {
  const given = new Set([...url.matchAll(/[?&]([^=&]+)=/g)].map(([, name = '']) => name.toLowerCase()))
  return Object.fromEntries(Object.entries(settings).filter(([name]) => !given.has(name.toLowerCase())))
}

function databaseOf(client: MongoClient): MongodbDatabase {
  const watch = watchOver(client)
  const close = () => {
    watch[Symbol.dispose]()
    return client.close()
  }
  return { db: client.db(), client, [Symbol.asyncDispose]: close }
}

async function refuseOld(client: MongoClient, where: string): Promise<void> {
  const { version } = await client.db('admin').command({ buildInfo: 1 })
  if (Number.parseInt(String(version), 10) >= oldestMajor) return
  await client.close()
  throw new DatabaseRefused(
    `The MongoDB server at ${where} is version ${String(version)}; ${oldestMajor}.0 or newer is needed.`,
  )
}

/** Host and port alone: the rest may be secret. */
function hostsOf(url: string): string {
  const [, hosts = '', database = ''] =
    /^mongodb(?:\+srv)?:\/\/(?:[^@/]*@)?([^/?]+)\/?([^?]*)/.exec(url) ?? []
  if (hosts === '') throw new DatabaseRefused('STORE_URL must be like mongodb://host:27017/database.')
  if (database === '') {
    throw new DatabaseRefused(
      `STORE_URL names no database: put it behind the address, like mongodb://${hosts}/parley.`,
    )
  }
  return hosts
}

function refusal(where: string, error: unknown): unknown {
  if (error instanceof MongoParseError) {
    return new DatabaseRefused('STORE_URL is not an address that the MongoDB driver can read.')
  }
  if (!(error instanceof MongoError)) return error
  const code = error instanceof MongoServerError ? error.code : undefined
  const said = denied.has(Number(code))
    ? `The MongoDB server at ${where} refuses this user. Check the user, password and authSource in STORE_URL.`
    : `The MongoDB server at ${where} does not answer. Start it, or correct STORE_URL.`
  return new DatabaseRefused(said, { cause: error })
}

/** Unauthorized, AuthenticationFailed, and what older servers say for them. */
const denied = new Set([13, 18, 8000])
const storageFull = 14031
/** BadValue, FailedToParse, TypeMismatch, InvalidOptions, InvalidPipeline: a question of ours was wrong. */
const ourFaults = new Set([2, 9, 14, 72, 40324])

/** What a caller may hear of a failed question: the driver's words stay in the cause. */
export function forCallers(error: unknown): unknown {
  if (!(error instanceof MongoError) && !isOfSocket(error)) return error
  const code = error instanceof MongoServerError ? Number(error.code) : undefined
  if (code !== undefined && ourFaults.has(code)) return error
  return unavailable(code === storageFull ? 'The storage is full' : 'The storage does not answer', error)
}

/** A socket that breaks while a command is written: the driver hands its error on as it is. */
function isOfSocket(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false
  return 'syscall' in error || /^(EPIPE$|ERR_(STREAM|SOCKET)_)/.test(String(error.code))
}

/** A document with this key is there already. The second sentence is how DocumentDB tells it for two upserts at once. */
export function isDuplicate(error: unknown): boolean {
  if (!(error instanceof MongoServerError)) return false
  return (
    error.code === 11000 || (error.code === 1 && /duplicate key|exclusion constraint/.test(error.message))
  )
}

/**
 * The write did nothing because another one at the same time was in its way: it may be tried again. MongoDB calls it
 * WriteConflict; DocumentDB, where two writes wait for each other at two unique indexes, a deadlock.
 */
export function isConflict(error: unknown): boolean {
  return error instanceof MongoServerError && (error.code === 112 || error.message === 'deadlock detected')
}

/** False when the key is taken. */
export async function insertUnlessThere<T extends { _id: string }>(
  collection: Collection<T>,
  document: T,
): Promise<boolean> {
  try {
    await collection.insertOne(document as never)
    return true
  } catch (error) {
    if (isDuplicate(error)) return false
    throw error
  }
}

/** Those that are there already stay as they are. */
export async function insertMissing<T extends { _id: string }>(
  collection: Collection<T>,
  documents: T[],
): Promise<void> {
  if (documents.length === 0) return
  try {
    await collection.insertMany(documents as never[], { ordered: false })
  } catch (error) {
    const failed = error instanceof MongoBulkWriteError ? [error.writeErrors].flat() : []
    if (failed.length === 0 || failed.some(({ code }) => code !== 11000)) throw error
  }
}
