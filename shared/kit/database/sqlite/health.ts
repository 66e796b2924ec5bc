import { statfs } from 'node:fs/promises'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { unavailable } from '../errors.ts'

/** Primary result codes of SQLite: IOERR, CORRUPT, FULL, NOTADB. */
const [ioError, corrupt, full, notADatabase] = [10, 11, 13, 26]
const damaged: readonly number[] = [corrupt, notADatabase]

/** How long checks fail after a failed write, even if smaller writes succeed in the meantime. */
const rememberedMs = 10_000
/** With less free space, the disk is considered full, because even the smallest commit needs a few log pages. */
const freeMinBytes = 1024 * 1024
/** Minimum interval between two reads of the file. */
const rereadMs = 2000

export interface SqliteHealthOptions {
  database: DatabaseSync
  file: string
  /** Returns the time in milliseconds. Default `performance.now`. */
  now?: () => number
}

/** Detects failures that a tiny write does not, such as a nearly full disk or damage to other pages. */
export class SqliteHealth {
  readonly #options: Required<SqliteHealthOptions>
  /** Never reset, because a damaged file needs an operator and a restart. */
  #isDamaged = false
  #failedAt = Number.NEGATIVE_INFINITY
  #readAt = Number.NEGATIVE_INFINITY

  constructor(options: SqliteHealthOptions) {
    this.#options = { now: () => performance.now(), ...options }
  }

  /** Call this with the primary result code of each driver error. */
  failed(code: number): void {
    if (damaged.includes(code)) this.#isDamaged = true
    if (code === full || code === ioError) this.#failedAt = this.#options.now()
  }

  /**
   * @throws ParleyError Unavailable; a driver error if the file cannot be read
   */
  async check(): Promise<void> {
    if (this.#isDamaged) throw unavailable('The database file is damaged')
    if (this.#options.now() - this.#failedAt < rememberedMs) throw unavailable('A write has failed recently')
    if (this.#hasNoPages() || (await this.#hasNoDisk())) throw unavailable('The storage is full')
    this.#reread()
  }

  #hasNoPages(): boolean {
    const [used, most] = [this.#pragma('page_count'), this.#pragma('max_page_count')]
    return used >= most && this.#pragma('freelist_count') === 0
  }

  async #hasNoDisk(): Promise<boolean> {
    const { blocks, bavail, bfree, bsize } = await statfs(path.dirname(this.#options.file))
    // Some file systems do not report their size.
    if (blocks === 0) return false
    return (process.getuid?.() === 0 ? bfree : bavail) * bsize < freeMinBytes
  }

  /** Reads the first row of each table from disk through another connection, whose cache is empty. */
  #reread(): void {
    const now = this.#options.now()
    if (now - this.#readAt < rereadMs) return
    using reader = new DatabaseSync(this.#options.file, { readOnly: true, timeout: 500 })
    const tables = reader.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
    for (const { name } of tables)
      reader.prepare(`SELECT * FROM "${String(name).replaceAll('"', '""')}" LIMIT 1`).get()
    this.#readAt = now
  }

  #pragma(name: 'page_count' | 'max_page_count' | 'freelist_count'): number {
    return Number(this.#options.database.prepare(`PRAGMA ${name}`).get()?.[name])
  }
}
