import type { SqliteDatabase } from '@parley/kit/database/sqlite/database'
import { type DecisionBounds, type HolderCount, holdersMax, surplusOf } from '../decision-quotas.ts'
import {
  type DecisionQuery,
  type DecisionRecord,
  type ListedDecision,
  type Verdict,
  withVerdict,
} from '../routing-store.ts'

export const decisionColumns = 'id, owner, holder, at, body, task, summary, verdicts'

const sql = {
  save: `INSERT INTO decisions (id, owner, holder, at, body, task, summary) VALUES (?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET body = excluded.body, task = excluded.task, summary = excluded.summary`,
  find: `SELECT ${decisionColumns} FROM decisions WHERE id = ?`,
  saveVerdicts: 'UPDATE decisions SET verdicts = ? WHERE id = ?',
  removeOld: 'DELETE FROM decisions WHERE id IN (SELECT id FROM decisions WHERE at < ? LIMIT ?)',
}

type Row = Record<string, unknown>

/** The decisions of the routing store. */
export class SqliteDecisions {
  readonly #database: SqliteDatabase
  readonly #bounds: DecisionBounds

  constructor(database: SqliteDatabase, bounds: DecisionBounds) {
    this.#database = database
    this.#bounds = bounds
  }

  /** Serializes the record when it is written, which happens after the response it describes. */
  async save(record: DecisionRecord, soon: boolean): Promise<void> {
    const { id, owner, holder = '', at, body, task = null, summary } = record
    const save = () =>
      this.#database
        .statement(sql.save)
        .run(
          id,
          owner ?? null,
          owner ?? holder,
          at,
          JSON.stringify(body),
          task,
          summary === undefined ? null : JSON.stringify(summary),
        )
    await (soon ? this.#database.writeSoon(save) : this.#database.write(save))
  }

  find(id: string): Promise<DecisionRecord | undefined> {
    return this.#database.read(() => {
      const row = this.#database.statement(sql.find).get(id)
      return row && decisionOf(row)
    })
  }

  list({ owner, task, since, until, skip, limit }: DecisionQuery): Promise<ListedDecision[]> {
    const whose = owner === undefined ? '' : 'AND owner IS NOT NULL AND holder = ? '
    const which = task === undefined ? '' : 'AND task = ? '
    const text = `SELECT id, owner, at, task, summary, verdicts, iif(summary IS NULL, body, NULL) AS body
      FROM decisions WHERE at >= ? AND at <= ? ${whose}${which}ORDER BY at DESC, id DESC LIMIT ? OFFSET ?`
    const named = [owner, task].filter((value) => value !== undefined)
    return this.#database.read(() =>
      this.#database
        .statement(text)
        .all(since, until, ...named, limit, skip)
        .map(listedOf),
    )
  }

  addVerdict(id: string, verdict: Verdict): Promise<boolean> {
    return this.#database.write(() => {
      const row = this.#database.statement(sql.find).get(id)
      if (row === undefined) return false
      const verdicts = withVerdict(listedOf(row).verdicts ?? [], verdict)
      this.#database.statement(sql.saveVerdicts).run(JSON.stringify(verdicts), id)
      return true
    })
  }

  /** Must run inside a write transaction. */
  removeOldNow(before: number, limit: number): number {
    return (
      Number(this.#database.statement(sql.removeOld).run(before, limit).changes) +
      removeSurplus(this.#database, 'owner IS NOT NULL', this.#bounds.callers, limit) +
      removeSurplus(this.#database, 'owner IS NULL', this.#bounds.anonymous, limit)
    )
  }
}

export function decisionOf(row: Row): DecisionRecord {
  const { owner, holder, body } = row
  const isAnonymous = typeof holder === 'string' && holder !== '' && owner === null
  return { ...listedOf(row), body: JSON.parse(String(body)), ...(isAnonymous && { holder }) }
}

function listedOf({ id, owner, at, task, summary, verdicts, body }: Row): ListedDecision {
  return {
    id: String(id),
    at: Number(at),
    ...(typeof owner === 'string' && { owner }),
    ...(typeof task === 'string' && { task }),
    ...(typeof summary === 'string' && { summary: JSON.parse(summary) }),
    ...(typeof verdicts === 'string' && { verdicts: JSON.parse(verdicts) }),
    ...(typeof body === 'string' && { body: JSON.parse(body) }),
  }
}

/** Must run inside a write transaction. */
function removeSurplus(
  database: SqliteDatabase,
  kind: 'owner IS NULL' | 'owner IS NOT NULL',
  keep: number,
  limit: number,
): number {
  const all = `FROM decisions WHERE ${kind}`
  const total = Number(database.statement(`SELECT count(*) AS total ${all}`).get()?.['total'])
  if (total <= keep) return 0
  const ofHolders = `SELECT holder, count(*) AS count ${all} GROUP BY holder ORDER BY count DESC, min(at) LIMIT ?`
  const counts = database
    .statement(ofHolders)
    .all(holdersMax)
    .map(({ holder, count }): HolderCount => ({ holder: String(holder), count: Number(count) }))
  const oldest = database.statement(
    `DELETE FROM decisions WHERE id IN (SELECT id ${all} AND holder = ? ORDER BY at LIMIT ?)`,
  )
  let removed = 0
  for (const { holder, count } of surplusOf(counts, Math.min(limit, total - keep)))
    removed += Number(oldest.run(holder, count).changes)
  return removed
}
