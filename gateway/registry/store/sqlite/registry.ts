import type { SqliteDatabase } from '@parley/kit/database/sqlite/database'
import type { AgentEntry } from '../../entry.ts'
import type { RegistryStore, Signs, StoredEntry } from '../registry-store.ts'

const statements = {
  all: 'SELECT entry FROM registry_agents',
  add: 'INSERT INTO registry_agents (id, slug, did, entry) VALUES (?, ?, ?, ?)',
  save: `INSERT INTO registry_agents (id, slug, did, entry) VALUES (?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET slug = excluded.slug, did = excluded.did, entry = excluded.entry`,
  remove: 'DELETE FROM registry_agents WHERE id = ?',
}

/** The database has a single writer, so revisions never differ and are not needed. */
const revision = 0

/** Number of updates per transaction, which takes about a millisecond. */
const signsAtOnce = 50

/** Stores the registry in an open database with the schema of `gatewayMigrations`. */
export class SqliteRegistryStore implements RegistryStore {
  readonly shared = false
  readonly #database: SqliteDatabase

  constructor(database: SqliteDatabase) {
    this.#database = database
  }

  async all(): Promise<StoredEntry[]> {
    const rows = await this.#database.read(() => this.#database.statement(statements.all).all())
    return rows.map((row) => ({ entry: JSON.parse(row['entry'] as string) as AgentEntry, revision }))
  }

  async add(entry: AgentEntry): Promise<number> {
    const row = rowOf(entry)
    await this.#database.write(() => this.#database.statement(statements.add).run(...row))
    return revision
  }

  async replace(entry: AgentEntry): Promise<number> {
    await this.#database.write(() => this.#put([entry]))
    return revision
  }

  async remove(id: string): Promise<void> {
    await this.#database.write(() => this.#database.statement(statements.remove).run(id))
  }

  /**
   * Writes in small batches without waiting for the disk, so that other statements can run in between. Lease data may be
   * lost.
   */
  async saveSigns(signs: readonly Signs[]): Promise<void> {
    for (let from = 0; from < signs.length; from += signsAtOnce) {
      const some = signs.slice(from, from + signsAtOnce)
      await this.#database.writeSoon(() => this.#put(some.map(({ entry }) => entry)))
    }
  }

  /** No other gateway writes to this database. */
  async changes() {
    return { changed: [], removed: [] }
  }

  ping(): Promise<void> {
    return this.#database.ping()
  }

  #put(entries: readonly AgentEntry[]): void {
    const save = this.#database.statement(statements.save)
    for (const entry of entries) save.run(...rowOf(entry))
  }
}

function rowOf({ id, slug, did, ...rest }: AgentEntry) {
  return [id, slug, did ?? null, JSON.stringify({ id, slug, did, ...rest })] as const
}
