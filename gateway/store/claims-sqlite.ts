import type { SqliteDatabase } from '@parley/kit/database/sqlite/database'
import type { Claims } from './claims.ts'

/** Steps of the schema; added, never changed. */
export const claimsMigrations: readonly [string] = [
  `CREATE TABLE gateway_signatures (
     name TEXT PRIMARY KEY,
     holder TEXT NOT NULL,
     until INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX gateway_signatures_until ON gateway_signatures (until);`,
]

/** Expired claims removed with each new one: more than are added, so the table holds only those that count. */
const removedAtOnce = 4

const sql = {
  remove: `DELETE FROM gateway_signatures WHERE name IN
    (SELECT name FROM gateway_signatures WHERE until <= ? ORDER BY until LIMIT ${removedAtOnce})`,
  hold: `INSERT INTO gateway_signatures (name, holder, until) VALUES (?1, ?2, ?3)
    ON CONFLICT (name) DO UPDATE SET holder = ?2, until = ?3 WHERE holder = ?2 OR until <= ?4`,
}

/** Claims of signatures in an opened database that has `claimsMigrations`. */
export function sqliteClaims(database: SqliteDatabase): Claims {
  return {
    hold: (name, holder, forMs) =>
      database.write(() => {
        const now = Date.now()
        database.statement(sql.remove).run(now)
        return database.statement(sql.hold).run(name, holder, now + forMs, now).changes === 1
      }),
  }
}
