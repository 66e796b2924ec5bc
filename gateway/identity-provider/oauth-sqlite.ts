import type { DatabaseSync, StatementSync } from 'node:sqlite'
import type { OAuthEntry, OAuthStore } from './oauth-store.ts'

/** What this adapter needs of an opened database. `write` commits, alone or with others, before it resolves. */
export interface WritableDatabase {
  readonly db: DatabaseSync
  write<T>(change: () => T): Promise<T>
}

/** Each entry brings the schema one step forward; entries are added, never changed. */
export const oauthMigrations: readonly string[] = [
  `CREATE TABLE oauth_entries (
     model TEXT NOT NULL,
     id TEXT NOT NULL,
     payload TEXT NOT NULL,
     client_id TEXT,
     grant_id TEXT,
     uid TEXT,
     user_code TEXT,
     consumed_at INTEGER,
     expires_at INTEGER,
     PRIMARY KEY (model, id)
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX oauth_entries_client ON oauth_entries (client_id) WHERE client_id IS NOT NULL;
   CREATE INDEX oauth_entries_grant ON oauth_entries (grant_id) WHERE grant_id IS NOT NULL;
   CREATE INDEX oauth_entries_uid ON oauth_entries (model, uid) WHERE uid IS NOT NULL;
   CREATE INDEX oauth_entries_user_code ON oauth_entries (model, user_code) WHERE user_code IS NOT NULL;
   CREATE INDEX oauth_entries_expiry ON oauth_entries (expires_at) WHERE expires_at IS NOT NULL;`,
]

const columns = 'model, id, payload, client_id, grant_id, uid, user_code, expires_at'
const statements = {
  insert: `INSERT INTO oauth_entries (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  upsert: `INSERT INTO oauth_entries (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (model, id) DO UPDATE SET payload = excluded.payload, client_id = excluded.client_id,
    grant_id = excluded.grant_id, uid = excluded.uid, user_code = excluded.user_code, expires_at = excluded.expires_at`,
  find: 'SELECT payload, consumed_at FROM oauth_entries WHERE model = ? AND id = ?',
  findByUid: 'SELECT payload, consumed_at FROM oauth_entries WHERE model = ? AND uid = ?',
  findByUserCode: 'SELECT payload, consumed_at FROM oauth_entries WHERE model = ? AND user_code = ?',
  consume: 'UPDATE oauth_entries SET consumed_at = ? WHERE model = ? AND id = ? AND consumed_at IS NULL',
  destroy: 'DELETE FROM oauth_entries WHERE model = ? AND id = ?',
  revokeByGrantId: 'DELETE FROM oauth_entries WHERE grant_id = ?',
  revokeByClientId: 'DELETE FROM oauth_entries WHERE client_id = ?',
  sweep: `DELETE FROM oauth_entries WHERE (model, id) IN
    (SELECT model, id FROM oauth_entries WHERE expires_at < ? ORDER BY expires_at LIMIT ?)`,
}
type Statements = { [K in keyof typeof statements]: StatementSync }
type Value = string | number | null

/** The OAuth server's state in an opened SQLite database that has `oauthMigrations`. */
export class SqliteOAuthStore implements OAuthStore {
  readonly #database: WritableDatabase
  readonly #sql: Statements

  constructor(database: WritableDatabase) {
    this.#database = database
    const prepared = Object.entries(statements).map(([name, sql]) => [name, database.db.prepare(sql)])
    this.#sql = Object.fromEntries(prepared) as Statements
  }

  async upsert(entry: OAuthEntry): Promise<void> {
    await this.#change('upsert', row(entry))
  }

  async insert(entry: OAuthEntry): Promise<boolean> {
    return (await this.#change('insert', row(entry))) === 1
  }

  async find(model: string, id: string): Promise<Record<string, unknown> | undefined> {
    return payload(this.#sql.find.get(model, id))
  }

  async findByUid(model: string, uid: string): Promise<Record<string, unknown> | undefined> {
    return payload(this.#sql.findByUid.get(model, uid))
  }

  async findByUserCode(model: string, userCode: string): Promise<Record<string, unknown> | undefined> {
    return payload(this.#sql.findByUserCode.get(model, userCode))
  }

  async consume(model: string, id: string, at: number): Promise<boolean> {
    return (await this.#change('consume', [at, model, id])) === 1
  }

  async destroy(model: string, id: string): Promise<void> {
    await this.#change('destroy', [model, id])
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    await this.#change('revokeByGrantId', [grantId])
  }

  async revokeByClientId(clientId: string): Promise<void> {
    await this.#change('revokeByClientId', [clientId])
  }

  sweepExpired(before: number, limit: number): Promise<number> {
    return this.#change('sweep', [before, limit])
  }

  #change(name: keyof Statements, values: Value[]): Promise<number> {
    return this.#database.write(() => Number(this.#sql[name].run(...values).changes))
  }
}

function row(entry: OAuthEntry): Value[] {
  return [
    entry.model,
    entry.id,
    JSON.stringify(entry.payload),
    entry.clientId ?? null,
    entry.grantId ?? null,
    entry.uid ?? null,
    entry.userCode ?? null,
    entry.expiresAt ?? null,
  ]
}

function payload(found: Record<string, unknown> | undefined): Record<string, unknown> | undefined {
  if (found === undefined) return undefined
  const stored = JSON.parse(found['payload'] as string) as Record<string, unknown>
  return found['consumed_at'] === null ? stored : { ...stored, consumed: found['consumed_at'] }
}
