import type { SqliteDatabase } from '@parley/kit/database/sqlite/database'
import { sentenceVectorsMax } from '../routing-store.ts'

const sql = {
  find: 'SELECT vector FROM sentence_vectors WHERE key = ?',
  save: `INSERT INTO sentence_vectors (key, at, vector) VALUES (?, ?, ?)
    ON CONFLICT (key) DO UPDATE SET at = excluded.at, vector = excluded.vector`,
  mark: 'UPDATE sentence_vectors SET at = ? WHERE key = ? AND at < ?',
  removeOld: `DELETE FROM sentence_vectors WHERE key IN
    (SELECT key FROM sentence_vectors WHERE at < ? ORDER BY at LIMIT ?)`,
  count: 'SELECT count(*) AS total FROM sentence_vectors',
  removeOldest: `DELETE FROM sentence_vectors WHERE key IN
    (SELECT key FROM sentence_vectors ORDER BY at LIMIT ?)`,
}

/** The sentence vectors of the routing store. */
export class SqliteSentenceVectors {
  readonly #database: SqliteDatabase
  readonly #max: number

  constructor(database: SqliteDatabase, max = sentenceVectorsMax) {
    this.#database = database
    this.#max = max
  }

  find(keys: readonly string[]): Promise<Map<string, Uint8Array>> {
    return this.#database.readTogether(() => {
      const statement = this.#database.statement(sql.find)
      const found = new Map<string, Uint8Array>()
      for (const key of keys) {
        const vector = statement.get(key)?.['vector']
        if (vector instanceof Uint8Array) found.set(key, vector)
      }
      return found
    })
  }

  async save(vectors: ReadonlyMap<string, Uint8Array>, at: number): Promise<void> {
    if (vectors.size === 0) return
    await this.#database.writeSoon(() => {
      for (const [key, vector] of vectors) this.#database.statement(sql.save).run(key, at, vector)
    })
  }

  async mark(keys: readonly string[], { at, before }: { at: number; before: number }): Promise<void> {
    if (keys.length === 0) return
    await this.#database.writeSoon(() => {
      for (const key of keys) this.#database.statement(sql.mark).run(at, key, before)
    })
  }

  /** Must run inside a write transaction. */
  removeOldNow(before: number, limit: number): number {
    const removed = Number(this.#database.statement(sql.removeOld).run(before, limit).changes)
    const excess = Number(this.#database.statement(sql.count).get()?.['total']) - this.#max
    if (excess <= 0) return removed
    const { changes } = this.#database.statement(sql.removeOldest).run(Math.min(limit, excess))
    return removed + Number(changes)
  }
}
