import { existsSync, readFileSync, rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { DatabaseRefused } from '@parley/kit/database/errors'
import { LogGap, recordsAfter, recordsIn, segmentFiles } from '@parley/kit/database/segment-log'
import { openConnection } from '@parley/kit/database/sqlite/connection'
import { openDatabase, type SqliteDatabase } from '@parley/kit/database/sqlite/database'
import { flushRecords } from './flush.ts'
import { logPosition, TaskLog, taskLogFile } from './task-log.ts'

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
 * @throws ParleyError Unavailable if the tasks of its log cannot be moved into the tables, for example because the disk is full
 */
export async function openSource(file: string, migrations: readonly string[]): Promise<SqliteSource> {
  if (!existsSync(file)) throw new DatabaseRefused(`There is no database ${file}.`)
  await using opened = new AsyncDisposableStack()
  const database = opened.use(
    await openDatabase(file, migrations.slice(0, versionOf(file, migrations.length))),
  )
  const tables = database.statement("SELECT name FROM sqlite_schema WHERE type = 'table'").all()
  const names = new Set(tables.map((row) => row['name']))
  // A killed process leaves tasks in the log. Only the tables are read.
  if (names.has('task_log_position')) await (await TaskLog.open(database, file)).flush()
  else if (names.has('task_log') && database.statement('SELECT 1 FROM task_log').get() !== undefined)
    throw new DatabaseRefused(
      `An earlier version was killed and left tasks in the log of ${file}. Start and stop its agent once with this version.`,
    )
  opened.move()
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

/** How often a copy is repeated while the server writes to the log. */
const copyAttemptsMax = 20

/**
 * Copies a consistent snapshot of a database, even while a server writes to it. The copy has no log: its tasks are in the
 * tables.
 * @throws Error if `to` exists
 */
export function copyDatabase(from: string, to: string): void {
  for (let attempt = 1; ; attempt += 1) {
    // The log is read first: the tables then contain every record that was removed from it in the meantime.
    const segments = segmentFiles(taskLogFile(from)).map((file) => ({
      file,
      bytes: existsSync(file) ? readFileSync(file) : Buffer.alloc(0),
    }))
    {
      using database = new DatabaseSync(from, { readOnly: true, timeout: 5000 })
      database.prepare('VACUUM INTO ?').run(to)
    }
    try {
      addLogged(to, segments)
      return
    } catch (error) {
      // Records were written while the files were read.
      if (!(error instanceof LogGap) || attempt === copyAttemptsMax) throw error
      rmSync(to)
    }
  }
}

/** Moves what the log contains into the tables of a copy. */
function addLogged(file: string, segments: { file: string; bytes: Buffer }[]): void {
  using connection = openConnection(file)
  const has = "SELECT 1 FROM sqlite_schema WHERE name = 'task_log_position'"
  if (connection.statement(has).get() === undefined) return
  const { id, position } = logPosition(connection)
  const found = segments.flatMap((segment) => recordsIn(segment.bytes, { id, file: segment.file }))
  const records = recordsAfter(position, found, file)
  connection.transaction(() => flushRecords(connection, records))
}
