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
  /**
   * `mongodb://…/database`; its own options (credentials, TLS, replica set, pool) take precedence over those below.
   */
  url: string
  /**
   * How long to wait for a connection, and then for a response. A silently dropped
   * connection keeps its slot in the pool until the second of these timeouts expires. Default 10,000 and 12,000.
   */
  poolTimeoutMs?: number
  socketTimeoutMs?: number
  /** How long to look for a server. Default 5,000. */
  connectTimeoutMs?: number
  /** Maximum number of connections, and the number that stay open when idle. Default 50 and 1. */
  poolMax?: number
  poolMin?: number
  /** For tests: called with each command. */
  onCommand?: (command: Record<string, unknown>) => void
}

/** A connection to a database on a MongoDB server whose version was checked. */
export interface MongodbDatabase extends AsyncDisposable {
  readonly db: Db
  /** For tests. */
  readonly client: MongoClient
}

/** How often the driver looks for a server that is down. The driver's default is 10 s. */
const heartbeatMs = 1000

/** Older versions are no longer maintained and lack features that the queries need. */
const oldestMajor = 6

/**
 * Connects to the database in the URL and checks the server's version and the user's permissions.
 * @throws DatabaseRefused with a sentence that contains neither password nor user
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
    // An undefined value in a filter is an error: if it were ignored, the filter would match every document.
    ignoreUndefined: false,
    monitorCommands: options.onCommand !== undefined,
  }
  const open = (more: MongoClientOptions) => opened(options, { ...settings, ...more })
  try {
    const first = await open({ retryWrites: false })
    const hello = await first.db('admin').command({ hello: 1 })
    await refuseOld(first, where)
    // Retried writes need sessions, which a standalone server does not have.
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

/** Removes settings that the URL specifies, because the driver would prefer these settings to the URL. */
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

/** Returns only hosts and ports, because the rest may be secret. */
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

/** Unauthorized, AuthenticationFailed, and the code that older servers use for them. */
const denied = new Set([13, 18, 8000])
const storageFull = 14031
/** BadValue, FailedToParse, TypeMismatch, InvalidOptions, InvalidPipeline: errors in our own queries. */
const ourFaults = new Set([2, 9, 14, 72, 40324])

/** Returns the error that callers receive; its cause is the driver's error. */
export function forCallers(error: unknown): unknown {
  if (!(error instanceof MongoError) && !isOfSocket(error)) return error
  const code = error instanceof MongoServerError ? Number(error.code) : undefined
  if (code !== undefined && ourFaults.has(code)) return error
  return unavailable(code === storageFull ? 'The storage is full' : 'The storage does not answer', error)
}

/** Whether this is a socket error during a write, which the driver does not wrap. */
function isOfSocket(error: unknown): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false
  return 'syscall' in error || /^(EPIPE$|ERR_(STREAM|SOCKET)_)/.test(String(error.code))
}

/** Whether the key is taken. DocumentDB reports concurrent upserts with the second pattern. */
export function isDuplicate(error: unknown): boolean {
  if (!(error instanceof MongoServerError)) return false
  return (
    error.code === 11000 || (error.code === 1 && /duplicate key|exclusion constraint/.test(error.message))
  )
}

/**
 * Whether a concurrent write prevented this one, which may be retried. MongoDB reports a WriteConflict, and
 * DocumentDB a deadlock over two unique indexes.
 */
export function isConflict(error: unknown): boolean {
  return error instanceof MongoServerError && (error.code === 112 || error.message === 'deadlock detected')
}

/** Returns undefined if a concurrent write prevented this one, so that `untilDone` repeats it. */
export async function unlessConflict<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write
  } catch (error) {
    if (isConflict(error)) return undefined
    throw error
  }
}

/** Returns false if the key is taken. */
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

/** Inserts the missing documents; existing ones stay unchanged. */
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
