import type { SqliteDatabase } from '@parley/kit/database/sqlite/database'
import type { OAuthEntry, OAuthStore } from './oauth-store.ts'

/** Each entry brings the schema one step forward; entries are added, never changed. */
export const oauthMigrations: readonly [string] = [
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
const sql = {
  insert: `INSERT INTO oauth_entries (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
  upsert: `INSERT INTO oauth_entries (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (model, id) DO UPDATE SET payload = excluded.payload, client_id = excluded.client_id,
    grant_id = excluded.grant_id, uid = excluded.uid, user_code = excluded.user_code, expires_at = excluded.expires_at`,
  exchange: 'UPDATE oauth_entries SET payload = ? WHERE model = ? AND id = ? AND payload = ?',
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
type Value = string | number | null

/** The OAuth server's state in an opened SQLite database that has `oauthMigrations`. */
export class SqliteOAuthStore implements OAuthStore {
  readonly #database: SqliteDatabase

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  async upsert(entry: OAuthEntry): Promise<void> {
    await this.#change(sql.upsert, row(entry))
  }

  async insert(entry: OAuthEntry): Promise<boolean> {
    return (await this.#change(sql.insert, row(entry))) === 1
  }

  async exchange(model: string, id: string, was: object, payload: object): Promise<boolean> {
    return (await this.#change(sql.exchange, [JSON.stringify(payload), model, id, JSON.stringify(was)])) === 1
  }

  find(model: string, id: string): Promise<Record<string, unknown> | undefined> {
    return this.#payload(sql.find, model, id)
  }

  findByUid(model: string, uid: string): Promise<Record<string, unknown> | undefined> {
    return this.#payload(sql.findByUid, model, uid)
  }

  findByUserCode(model: string, userCode: string): Promise<Record<string, unknown> | undefined> {
    return this.#payload(sql.findByUserCode, model, userCode)
  }

  async consume(model: string, id: string, at: number): Promise<boolean> {
    return (await this.#change(sql.consume, [at, model, id])) === 1
  }

  async destroy(model: string, id: string): Promise<void> {
    await this.#change(sql.destroy, [model, id])
  }

  async revokeByGrantId(grantId: string): Promise<void> {
    await this.#change(sql.revokeByGrantId, [grantId])
  }

  async revokeByClientId(clientId: string): Promise<void> {
    await this.#change(sql.revokeByClientId, [clientId])
  }

  sweepExpired(before: number, limit: number): Promise<number> {
    return this.#change(sql.sweep, [before, limit])
  }

  #change(statement: string, values: Value[]): Promise<number> {
    return this.#database.write(() => Number(this.#database.statement(statement).run(...values).changes))
  }

  async #payload(
    statement: string,
    model: string,
    key: string,
  ): Promise<Record<string, unknown> | undefined> {
    const found = await this.#database.read(() => this.#database.statement(statement).get(model, key))
    if (found === undefined) return undefined
    const stored = JSON.parse(found['payload'] as string) as Record<string, unknown>
    return found['consumed_at'] === null ? stored : { ...stored, consumed: found['consumed_at'] }
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
