import { DatabaseSync } from 'node:sqlite'
import type { Statement } from './database.ts'

/** How long a transaction waits for another connection of the process. */
const busyMs = 5000

/** A connection without group commit, for another thread of a process that has the database open, or for a copy. */
export interface SqliteConnection extends Disposable {
  /** Prepares the statement once. */
  statement(sql: string): Statement
  /** Runs in one transaction and returns once it is on the disk. Blocks the thread. */
  transaction(run: () => void): void
}

const pragmas = `
  PRAGMA synchronous = FULL;
  PRAGMA fullfsync = ON;
  PRAGMA checkpoint_fullfsync = ON;
  PRAGMA wal_autocheckpoint = 1000;
  PRAGMA journal_size_limit = 67108864;
  PRAGMA trusted_schema = OFF;
`

export function openConnection(file: string): SqliteConnection {
  const database = new DatabaseSync(file, { timeout: busyMs })
  database.exec(pragmas)
  const statements = new Map<string, Statement>()
  return {
    [Symbol.dispose]: () => database.close(),
    statement(sql) {
      let statement = statements.get(sql)
      if (statement === undefined) {
        statement = database.prepare(sql)
        statements.set(sql, statement)
      }
      return statement
    },
    transaction(run) {
      database.exec('BEGIN IMMEDIATE')
      try {
        run()
        database.exec('COMMIT')
      } finally {
        if (database.isTransaction) database.exec('ROLLBACK')
      }
    },
  }
}
