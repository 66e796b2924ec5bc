import { closeSync, openSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import path from 'node:path'
import { DatabaseSync, type StatementSync } from 'node:sqlite'
import { ParleyError } from '@parley/wire/errors'
import { makeDurableFolder } from '../durable-folder.ts'
import { DatabaseInUse, DatabaseRefused, unavailable } from '../errors.ts'
import { GroupCommit } from './group-commit.ts'
import { SqliteHealth } from './health.ts'
import { LogSync } from './log-sync.ts'

export type Statement = StatementSync

/** Another writer of the same file, in this process. */
export interface SecondWriter {
  /** Returns a promise while it writes. Transactions begin when it returns undefined. */
  writing(): Promise<void> | undefined
  /** Called before the database closes, after all writes have settled. May call `writeNow`. Must not reject. */
  closing(): Promise<void>
}

/** An embedded database file that only this process writes. */
export interface SqliteDatabase extends AsyncDisposable {
  /** Prepares the statement once. Run it inside `read` or `write`. */
  statement(sql: string): Statement
  /**
   * Runs immediately. The read sees every write whose promise has resolved.
   * @throws ParleyError Unavailable
   */
  read<T>(run: () => T): Promise<T>
  /** Like `read`, in the same turn. @throws ParleyError Unavailable */
  readNow<T>(run: () => T): T
  /**
   * Like `read`, but for several statements, which see the same snapshot and lock the file only once.
   * @throws ParleyError Unavailable
   */
  readTogether<T>(run: () => T): Promise<T>
  /**
   * Runs in one transaction with the other writes of this event loop turn, and resolves once the data is on disk. If
   * `run` throws, its write changes nothing and the others are not affected. `run` may be called twice, so it must
   * have no other side effects.
   * @throws ParleyError Unavailable if the storage is full or does not respond
   */
  write<T>(run: () => T): Promise<T>
  /**
   * Like `write`, but does not wait for the disk. The write survives if the process is killed, but a power failure
   * may lose the last second.
   */
  writeSoon<T>(run: () => T): Promise<T>
  /**
   * Returns the error for callers after a failure of another file of this database. Pings then fail for a while, as after
   * a failed write.
   */
  failed(error: unknown): unknown
  /** Makes transactions wait for another writer. */
  share(writer: SecondWriter): void
  /**
   * Runs immediately in a transaction that does not wait for the disk. Must not be called inside `read` or `write`, or
   * while the second writer writes.
   * @param keep whether to commit. Otherwise, the changes are visible to `run` only. Default true
   * @throws ParleyError Unavailable
   */
  writeNow<T>(run: () => T, keep?: boolean): T
  /** Resolves once all commits so far are on the disk. @throws ParleyError Unavailable */
  synced(): Promise<void>
  /** Writes to the disk and waits for completion. Rejects if the disk is full or the file is damaged. */
  ping(): Promise<void>
}

/**
 * Commits do not sync the log: `LogSync` does, without blocking the event loop. Checkpoints run as part of a commit;
 * otherwise the log would grow without bound under load. A log of 2,000 pages (8 MiB) instead of the default 1,000
 * combines more changes to the same page; after a large transaction it shrinks to 64 MiB. The cache is 16 MiB: a larger
 * cache, a memory-mapped file or larger pages would save system calls, but no CPU time. On macOS, a sync reaches the disk
 * only with `checkpoint_fullfsync`.
 */
const pragmas = `
  PRAGMA synchronous = NORMAL;
  PRAGMA checkpoint_fullfsync = ON;
  PRAGMA wal_autocheckpoint = 2000;
  PRAGMA journal_size_limit = 67108864;
  PRAGMA cache_size = -16384;
  PRAGMA temp_store = MEMORY;
  PRAGMA trusted_schema = OFF;
`

/**
 * Opens the file, or creates it with mode 0600, and migrates its schema. `migrations[n]` is the SQL that upgrades
 * version n to n + 1. The version is stored in `user_version`.
 * @throws DatabaseRefused if another process has the file open, its schema is newer, or it is not a database
 */
export async function openDatabase(
  file: string,
  migrations: readonly string[],
  { now }: { now?: () => number } = {},
): Promise<SqliteDatabase> {
  using opened = new DisposableStack()
  try {
    makeFile(file)
    opened.use(lockFor(file))
    refuseNewer(file, migrations.length)
    const database = opened.use(new DatabaseSync(file, { timeout: 500 }))
    database.prepare('PRAGMA journal_mode = WAL').get()
    database.exec(pragmas)
    migrate(database, migrations)
    const health = new SqliteHealth({ database, file, ...(now !== undefined && { now }) })
    return new OpenDatabase(database, migrations.length, health, opened.move())
  } catch (error) {
    throw error instanceof DatabaseRefused ? error : refusal(file, error)
  }
}

/**
 * Creates the file before SQLite does, in order to set its mode. Never opens an existing file, because closing it
 * would release this process's locks.
 */
function makeFile(file: string): void {
  makeDurableFolder(path.dirname(file))
  for (const name of [file, `${file}.lock`]) {
    try {
      closeSync(openSync(name, 'wx', 0o600))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    }
  }
}

/**
 * Holds an exclusive transaction on a small file next to the database until the process ends. The operating system
 * releases the lock even if the process is killed. Other processes can still read the database.
 */
function lockFor(file: string): Disposable {
  const lock = new DatabaseSync(`${file}.lock`, { timeout: 0 })
  try {
    lock.exec('PRAGMA journal_mode = MEMORY; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE')
    return lock
  } catch (error) {
    lock.close()
    if (!isDriverError(error) || ![busy, locked].includes(error.errcode & 0xff)) throw error
    throw new DatabaseInUse(
      `The database ${file} is open in another process. Stop that process first, or set another DATA_DIR.`,
      { cause: error },
    )
  }
}

/** Opens the file read-only, so that the check does not change it. */
function refuseNewer(file: string, known: number): void {
  using database = new DatabaseSync(file, { readOnly: true })
  const version = versionOf(database)
  if (version <= known) return
  throw new DatabaseRefused(
    `The database ${file} was written by a newer Parley (schema ${version}, this one knows ${known}). ` +
      'Start the newer version, or set another DATA_DIR.',
  )
}

function migrate(database: DatabaseSync, migrations: readonly string[]): void {
  const version = versionOf(database)
  for (const [offset, sql] of migrations.slice(version).entries()) {
    database.exec('BEGIN IMMEDIATE')
    try {
      database.exec(sql)
      database.exec(`PRAGMA user_version = ${version + offset + 1}`)
      database.exec('COMMIT')
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      throw error
    }
  }
}

function versionOf(database: DatabaseSync): number {
  return Number(database.prepare('PRAGMA user_version').get()?.['user_version'])
}

class OpenDatabase implements SqliteDatabase {
  readonly #database: DatabaseSync
  readonly #version: number
  readonly #health: SqliteHealth
  readonly #opened: DisposableStack
  readonly #writes: GroupCommit
  readonly #sync: LogSync
  readonly #beginWriting: () => void
  readonly #commit: () => void
  readonly #begin: () => void
  readonly #rollback: () => void
  readonly #statements = new Map<string, Statement>()
  #secondWriter: SecondWriter | undefined
  #isClosing = false

  constructor(database: DatabaseSync, version: number, health: SqliteHealth, opened: DisposableStack) {
    this.#database = database
    this.#version = version
    this.#health = health
    this.#opened = opened
    const verb = (sql: string) => {
      const statement = database.prepare(sql)
      return () => void statement.run()
    }
    const [beginWriting, commit, rollback] = [verb('BEGIN IMMEDIATE'), verb('COMMIT'), verb('ROLLBACK')]
    this.#begin = verb('BEGIN')
    this.#beginWriting = beginWriting
    this.#commit = commit
    // A full or failing disk may already have rolled back the transaction.
    this.#rollback = () => database.isTransaction && rollback()
    this.#sync = logSync(database)
    this.#writes = new GroupCommit({
      ready: () => this.#secondWriter?.writing(),
      begin: beginWriting,
      commit,
      settle: (soon) => this.#settle(soon),
      isOpen: () => database.isTransaction,
      rollback: this.#rollback,
      savepoint: verb('SAVEPOINT one_write'),
      release: verb('RELEASE one_write'),
      rollbackToSavepoint: verb('ROLLBACK TO one_write'),
    })
  }

  statement(sql: string): Statement {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.#database.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }

  async read<T>(run: () => T): Promise<T> {
    return this.readNow(run)
  }

  readNow<T>(run: () => T): T {
    this.#requireOpen()
    try {
      return run()
    } catch (error) {
      throw this.#failure(error)
    }
  }

  readTogether<T>(run: () => T): Promise<T> {
    return this.read(() => {
      this.#begin()
      try {
        return run()
      } finally {
        // Nothing was written, and unlike a commit, a rollback cannot fail.
        this.#rollback()
      }
    })
  }

  write<T>(run: () => T): Promise<T> {
    return this.#write(run, false)
  }

  writeSoon<T>(run: () => T): Promise<T> {
    return this.#write(run, true)
  }

  failed(error: unknown): unknown {
    if (error instanceof ParleyError || isDriverError(error)) return this.#failure(error)
    // A mistake of the program.
    if (error instanceof TypeError || error instanceof RangeError) return error
    const { code } = error as NodeJS.ErrnoException
    this.#health.failed(code === 'ENOSPC' ? full : ioError)
    return unavailable(code === 'ENOSPC' ? 'The storage is full' : 'The storage does not answer', error)
  }

  share(writer: SecondWriter): void {
    this.#secondWriter = writer
  }

  async synced(): Promise<void> {
    try {
      await this.#sync.now()
    } catch (error) {
      throw this.#failure(error)
    }
  }

  writeNow<T>(run: () => T, keep = true): T {
    if (this.#opened.disposed) throw unavailable('The store is closed')
    try {
      this.#beginWriting()
      const result = run()
      if (keep) this.#commit()
      return result
    } catch (error) {
      throw this.#failure(error)
    } finally {
      this.#rollback()
      if (keep) this.#sync.soon()
    }
  }

  async ping(): Promise<void> {
    // Rewrites the first page without changing it.
    await this.write(() => this.#database.exec(`PRAGMA user_version = ${this.#version}`))
    try {
      await this.#health.check()
    } catch (error) {
      throw this.#failure(error)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosing = true
    await this.#writes.drained()
    if (this.#opened.disposed) return
    await this.#secondWriter?.closing()
    await this.#sync[Symbol.asyncDispose]()
    this.#opened.dispose()
  }

  #settle(soon: boolean): Promise<void> | undefined {
    // If the sync fails, the transaction is in the file all the same, and later transactions see it.
    if (!soon) return this.#sync.now()
    this.#sync.soon()
    return undefined
  }

  async #write<T>(run: () => T, soon: boolean): Promise<T> {
    this.#requireOpen()
    try {
      return await this.#writes.write(run, soon)
    } catch (error) {
      throw this.#failure(error)
    }
  }

  #failure(error: unknown): unknown {
    if (isDriverError(error)) this.#health.failed(error.errcode & 0xff)
    return forCallers(error)
  }

  #requireOpen(): void {
    if (this.#isClosing) throw unavailable('The store is closed')
  }
}

/**
 * Closing the log is safe, because SQLite holds no lock on it. The permission model of Node allows syncs of a `FileHandle`,
 * but not of a file descriptor.
 */
function logSync(database: DatabaseSync): LogSync {
  let log: FileHandle | undefined
  const sync = async () => {
    try {
      log ??= await open(`${database.location()}-wal`, 'r+')
      await log.datasync()
    } catch (error) {
      throw unavailable('The storage does not answer', error)
    }
  }
  const checkpoint = () => {
    const busy = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()?.['busy']
    if (busy !== 0) throw unavailable('The storage does not answer')
  }
  return new LogSync({ sync, checkpoint, close: async () => log?.close() })
}

interface DriverError extends Error {
  code: 'ERR_SQLITE_ERROR'
  /** SQLite's extended result code; its low byte is the primary code. */
  errcode: number
}

const [busy, locked, ioError, corrupt, full, notADatabase] = [5, 6, 10, 11, 13, 26]
/** Primary result codes of storage failures (BUSY … NOTADB); all others are errors in our code. */
const storageAtFault = [3, busy, locked, 7, 8, ioError, corrupt, full, 14, 15, notADatabase]

function isDriverError(error: unknown): error is DriverError {
  return error instanceof Error && (error as Partial<DriverError>).code === 'ERR_SQLITE_ERROR'
}

function forCallers(error: unknown): unknown {
  if (!isDriverError(error)) return error
  const primary = error.errcode & 0xff
  if (!storageAtFault.includes(primary)) return error
  return unavailable(primary === full ? 'The storage is full' : 'The storage does not answer', error)
}

function refusal(file: string, error: unknown): unknown {
  if (isDriverError(error) && (error.errcode & 0xff) === notADatabase) {
    return new DatabaseRefused(`The file ${file} is not a database. Move it away, or set another DATA_DIR.`, {
      cause: error,
    })
  }
  const said = isDriverError(error) || (error as NodeJS.ErrnoException).syscall !== undefined
  if (!said) return error
  return new DatabaseRefused(`The database ${file} cannot be opened: ${(error as Error).message}.`, {
    cause: error,
  })
}
