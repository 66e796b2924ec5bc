import { existsSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { DatabaseRefused } from '@parley/kit/database/errors'
import { openDatabase, type SqliteDatabase } from '@parley/kit/database/sqlite/database'

export type Row = Record<string, unknown>

/** A database file that is read completely and not changed. It is locked while it is open. */
export interface SqliteSource extends AsyncDisposable {
  readonly file: string
  readonly database: SqliteDatabase
  /** False when its schema is older than the table. */
  has(table: string): boolean
}

/**
 * Opens a file without a migration of its schema.
 * @throws DatabaseRefused when a running server has it open, a newer version wrote it, or it does not exist
 */
export async function openSource(file: string, migrations: readonly string[]): Promise<SqliteSource> {
  if (!existsSync(file)) throw new DatabaseRefused(`There is no database ${file}.`)
  const database = await openDatabase(file, migrations.slice(0, versionOf(file, migrations.length)))
  const tables = database.statement("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
  const names = new Set(tables.map((row) => row['name']))
  return {
    file,
    database,
    has: (table) => names.has(table),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

/** The newest version if the file cannot be read: opening it then reports the reason. */
function versionOf(file: string, known: number): number {
  try {
    using database = new DatabaseSync(file, { readOnly: true })
    return Math.min(Number(database.prepare('PRAGMA user_version').get()?.['user_version']), known)
  } catch {
    return known
  }
}

/**
 * Copies a database as of one moment. A server may write to it at the same time.
 * @throws Error when `to` exists
 */
export function copyDatabase(from: string, to: string): void {
  using database = new DatabaseSync(from, { readOnly: true, timeout: 5000 })
  database.prepare('VACUUM INTO ?').run(to)
}
