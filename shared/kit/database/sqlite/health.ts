import { statfs } from 'node:fs/promises'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { unavailable } from '../errors.ts'

/** Primary result codes of SQLite: IOERR, CORRUPT, FULL, NOTADB. */
const [ioError, corrupt, full, notADatabase] = [10, 11, 13, 26]
const damaged: readonly number[] = [corrupt, notADatabase]

/** A failed write counts for so long: smaller ones may succeed in between. */
const rememberedMs = 10_000
/** With less room than this the disk counts as full: the log takes a few pages for the smallest commit. */
const freeMinBytes = 1024 * 1024
/** The file is read again at most so often. */
const rereadMs = 2000

export interface SqliteHealthOptions {
  database: DatabaseSync
  file: string
  /** In milliseconds. Default `performance.now`. */
  now?: () => number
}

/** What a tiny write does not show: a full disk that still has room for it, and damage in pages that it does not touch. */
export class SqliteHealth {
  readonly #options: Required<SqliteHealthOptions>
  /** A damaged file does not heal: it takes an operator and a restart. */
  #isDamaged = false
  #failedAt = Number.NEGATIVE_INFINITY
  #readAt = Number.NEGATIVE_INFINITY

  constructor(options: SqliteHealthOptions) {
    this.#options = { now: () => performance.now(), ...options }
  }

  /** To be called with the primary result code of each failure that the driver reports. */
  failed(code: number): void {
    if (damaged.includes(code)) this.#isDamaged = true
    if (code === full || code === ioError) this.#failedAt = this.#options.now()
  }

  /** @throws ParleyError Unavailable; an error of the driver where the file cannot be read */
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
    // Some file systems do not say.
    if (blocks === 0) return false
    return (process.getuid?.() === 0 ? bfree : bavail) * bsize < freeMinBytes
  }

  /** Past the cache of the connection that writes: the first row of each table, as the disk has it. */
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
