import type { SqliteDatabase } from '@parley/kit/database/sqlite/database'
import type { TaskFeatures } from '@parley/negotiation/score/training-example'
import { type DecisionBounds, type HolderCount, holdersMax, surplusOf } from '../decision-quotas.ts'
import {
  type DecisionQuery,
  type DecisionRecord,
  type ListedDecision,
  type Verdict,
  withVerdict,
} from '../routing-store.ts'

export const decisionColumns = 'id, owner, holder, at, body, task, summary, verdicts, features, context'

const sql = {
  save: `INSERT INTO decisions (id, owner, holder, at, body, task, summary, features, context)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (id) DO UPDATE SET body = excluded.body, task = excluded.task, summary = excluded.summary,
      features = excluded.features, context = excluded.context`,
  find: `SELECT ${decisionColumns} FROM decisions WHERE id = ?`,
  saveVerdicts: 'UPDATE decisions SET verdicts = ? WHERE id = ?',
  featuresOfTask: `SELECT features FROM decisions INDEXED BY decisions_of_task
    WHERE task = ? AND owner = ? ORDER BY at DESC LIMIT 1`,
  removeFeatures: 'UPDATE decisions SET features = NULL WHERE context = ? AND features IS NOT NULL',
  removeOld: 'DELETE FROM decisions WHERE id IN (SELECT id FROM decisions WHERE at < ? LIMIT ?)',
}

type Row = Record<string, unknown>

/** How long a decision waits for others, which are written in the same transaction. */
const queuedMs = 50
/** This many waiting decisions are written without further delay. */
const queuedMax = 128

interface Batch {
  records: DecisionRecord[]
  written: PromiseWithResolvers<void>
  timer: NodeJS.Timeout
}

/** The decisions of the routing store. */
export class SqliteDecisions {
  readonly #database: SqliteDatabase
  readonly #bounds: DecisionBounds
  #batch: Batch | undefined
  #writing: Promise<void> = Promise.resolve()

  constructor(database: SqliteDatabase, bounds: DecisionBounds) {
    this.#database = database
    this.#bounds = bounds
  }

  /** Serializes the record when it is written, which happens after the response it describes. */
  async save(record: DecisionRecord, soon: boolean): Promise<void> {
    const { id, owner, holder = '', at, body, task = null, summary, features, context = null } = record
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
          features === undefined ? null : JSON.stringify(features),
          context,
        )
    await (soon ? this.#database.writeSoon(save) : this.#database.write(save))
  }

  /**
   * Writes the record with others in one transaction. The record has four index entries and a body, so that a commit for each
   * record would write more pages for the record than for the routes of its message.
   */
  queue(record: DecisionRecord): Promise<void> {
    this.#batch ??= {
      records: [],
      written: Promise.withResolvers(),
      timer: setTimeout(() => void this.flush(), queuedMs),
    }
    const { records, written } = this.#batch
    if (records.push(record) >= queuedMax) void this.flush()
    return written.promise
  }

  /** Resolves when all queued records are written. Never rejects: the promises of `queue` do. */
  flush(): Promise<void> {
    const batch = this.#batch
    if (batch === undefined) return this.#writing
    this.#batch = undefined
    clearTimeout(batch.timer)
    this.#writing = this.#write(batch)
    return this.#writing
  }

  /** A record that cannot be written does not affect the others. */
  async #write({ records, written }: Batch): Promise<void> {
    const outcomes = await Promise.allSettled(records.map((record) => this.save(record, true)))
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed === undefined) written.resolve()
    else written.reject(failed.reason)
  }

  async find(id: string): Promise<DecisionRecord | undefined> {
    await this.flush()
    return this.#database.read(() => {
      const row = this.#database.statement(sql.find).get(id)
      return row && decisionOf(row)
    })
  }

  async list({ owner, task, since, until, skip, limit }: DecisionQuery): Promise<ListedDecision[]> {
    await this.flush()
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

  async addVerdict(id: string, verdict: Verdict): Promise<boolean> {
    await this.flush()
    return this.#database.write(() => {
      const row = this.#database.statement(sql.find).get(id)
      if (row === undefined) return false
      const verdicts = withVerdict(listedOf(row).verdicts ?? [], verdict)
      this.#database.statement(sql.saveVerdicts).run(JSON.stringify(verdicts), id)
      return true
    })
  }

  async featuresOfTask(owner: string, task: string): Promise<TaskFeatures | undefined> {
    await this.flush()
    return this.#database.read(() => {
      const features = this.#database.statement(sql.featuresOfTask).get(task, owner)?.['features']
      return typeof features === 'string' ? JSON.parse(features) : undefined
    })
  }

  async removeFeatures(context: string): Promise<void> {
    await this.flush()
    await this.#database.write(() => this.#database.statement(sql.removeFeatures).run(context))
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
  const { owner, holder, body, features, context } = row
  const isAnonymous = typeof holder === 'string' && holder !== '' && owner === null
  return {
    ...listedOf(row),
    body: JSON.parse(String(body)),
    ...(isAnonymous && { holder }),
    ...(typeof features === 'string' && { features: JSON.parse(features) }),
    ...(typeof context === 'string' && { context }),
  }
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
