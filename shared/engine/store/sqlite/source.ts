import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { DatabaseRefused } from '@parley/kit/database/errors'
import { openDatabase, type SqliteDatabase } from '@parley/kit/database/sqlite/database'
import { TaskLog } from './task-log.ts'

export type Row = Record<string, unknown>

/** A database file that is read completely. Only its log of tasks is moved into the tables. The file is locked while it is open. */
export interface SqliteSource extends AsyncDisposable {
  readonly file: string
  readonly database: SqliteDatabase
  /** Returns false if the file's schema is older than the table. */
  has(table: string): boolean
}

/**
 * Opens a file without migrating its schema.
 * @throws DatabaseRefused if a running server has it open, a newer version wrote it, or it does not exist
 */
export async function openSource(file: string, migrations: readonly string[]): Promise<SqliteSource> {
  if (!existsSync(file)) throw new DatabaseRefused(`There is no database ${file}.`)
  const database = await openDatabase(file, migrations.slice(0, versionOf(file, migrations.length)))
  const tables = database.statement("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
  const names = new Set(tables.map((row) => row['name']))
  // A killed process leaves tasks in the log.
  if (names.has('task_log')) TaskLog.open(database)
  return {
    file,
    database,
    has: (table) => names.has(table),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/** Returns the newest version if the file cannot be read, because opening the file then reports the reason. */
function versionOf(file: string, known: number): number {
  try {
    using database = new DatabaseSync(file, { readOnly: true })
    return Math.min(Number(database.prepare('PRAGMA user_version').get()?.['user_version']), known)
  } catch {
    return known
  }
}

/**
 * Copies a consistent snapshot of a database, even while a server writes to it.
 * @throws Error if `to` exists
 */
export function copyDatabase(from: string, to: string): void {
  using database = new DatabaseSync(from, { readOnly: true, timeout: 5000 })
  database.prepare('VACUUM INTO ?').run(to)
}
