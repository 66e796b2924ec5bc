import type { SqliteDatabase } from '@parley/kit/database/sqlite/database'
import type { TaskFeatures, TrainingExample } from '@parley/negotiation/score/training-example'
import { type DecisionBounds, decisionBounds } from '../decision-quotas.ts'
import type {
  ClaimedTasksQuery,
  DecisionQuery,
  DecisionRecord,
  ListedDecision,
  Route,
  RouteKind,
  RoutingStore,
  TrainingExampleChanges,
  Verdict,
} from '../routing-store.ts'
import { SqliteDecisions } from './decisions.ts'
import { RouteQueue } from './route-queue.ts'
import { SqliteSentenceVectors } from './sentence-vectors.ts'

export const routeColumns = 'owner, kind, id, agent, context, at, words, claim_until, claim_verified_until'

const sql = {
  find: `SELECT ${routeColumns} FROM routes WHERE owner = ? AND kind = ? AND id = ?`,
  save: `INSERT INTO routes (${routeColumns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (owner, kind, id) DO UPDATE
    SET agent = excluded.agent, context = excluded.context, at = excluded.at, words = excluded.words,
      claim_until = excluded.claim_until, claim_verified_until = excluded.claim_verified_until
    WHERE excluded.claim_until IS NULL OR routes.agent = excluded.agent`,
  verifyClaim: `UPDATE routes SET claim_verified_until = ?
    WHERE owner = ? AND kind = ? AND id = ? AND agent = ? AND claim_until IS NOT NULL`,
  claim: 'INSERT OR IGNORE INTO routes (owner, kind, id, agent, at) VALUES (?, ?, ?, ?, ?)',
  touch: `INSERT INTO route_agents (owner, agent, at) VALUES (?, ?, ?)
    ON CONFLICT (owner, agent) DO UPDATE SET at = excluded.at`,
  takeWords: "UPDATE routes SET words = NULL WHERE owner = ? AND kind = 'task' AND id = ?",
  move: 'UPDATE routes SET agent = ?, at = ? WHERE owner = ? AND kind = ? AND id = ? AND agent = ?',
  letGo: 'DELETE FROM routes WHERE owner = ? AND kind = ? AND id = ? AND agent = ?',
  remove: 'DELETE FROM routes WHERE owner = ? AND kind = ? AND id = ?',
  removeContext: 'DELETE FROM routes WHERE owner = ? AND context = ?',
  agentsOf: 'SELECT agent FROM route_agents WHERE owner = ? ORDER BY at DESC LIMIT ?',
  waiting: `SELECT ${routeColumns} FROM routes INDEXED BY routes_waiting
    WHERE id = ? AND agent = ? AND words IS NOT NULL AND kind = 'task'`,
  trainingExamples: 'SELECT body FROM lessons ORDER BY at',
  findTrainingExample: 'SELECT body FROM lessons WHERE context = ? AND agent = ?',
  trainingExamplesOf: 'SELECT body FROM lessons WHERE agent = ? ORDER BY at',
  saveTrainingExample: `INSERT INTO lessons (context, agent, at, body, removed_with) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (context, agent) DO UPDATE
    SET at = excluded.at, body = excluded.body, removed_with = excluded.removed_with`,
  removeTrainingExample: 'DELETE FROM lessons WHERE context = ? AND agent = ?',
  removeTrainingExamplesOf: 'DELETE FROM lessons WHERE context = ? OR removed_with = ? RETURNING context',
  removeTrainingExamplesOfAgent: `DELETE FROM lessons
    WHERE agent = ?1 AND (?2 IS NULL OR json_extract(body, '$.caller') = ?2)`,
  key: 'SELECT key FROM routing_key',
  kind: 'SELECT 1 FROM routes INDEXED BY routes_age WHERE kind = ? LIMIT 1',
}

/** Above this number, the oldest examples are removed. */
const trainingExamplesMax = 100_000

type Row = Record<string, unknown>

/** The routing store in an open database to which `gatewayMigrations` have been applied. */
export class SqliteRoutingStore implements RoutingStore, AsyncDisposable {
  readonly shared = false
  readonly #database: SqliteDatabase
  readonly #decisions: SqliteDecisions
  readonly #vectors: SqliteSentenceVectors
  /** Every write of routes first waits until this queue is flushed, so that it changes what `find` returns. */
  readonly #queued: RouteQueue
  /** Whether routes of a kind were ever written. Most deployments have none of some kinds. */
  readonly #hasKind = new Map<RouteKind, boolean>()

  constructor(database: SqliteDatabase, bounds: DecisionBounds = decisionBounds) {
    this.#database = database
    this.#decisions = new SqliteDecisions(database, bounds)
    this.#vectors = new SqliteSentenceVectors(database)
    this.#queued = new RouteQueue((routes) => this.#save(routes, true))
  }

  /** Writes what is queued. The database is closed by its owner. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#queued.flush(), this.#decisions.flush()])
  }

  async find(owner: string, kind: RouteKind, id: string): Promise<Route | undefined> {
    const queued = this.#queued.find(owner, kind, id)
    if (queued !== undefined) return { ...queued }
    if (!this.#mayHave(kind)) return undefined
    const row = await this.#get(sql.find, owner, kind, id)
    return row && routeOf({ ...row, owner, kind, id })
  }

  queueRoutes(routes: readonly Route[]): Promise<void> {
    return this.#queued.add(routes)
  }

  async save(routes: readonly Route[], soon = false): Promise<void> {
    await this.#queued.flush()
    await this.#save(routes, soon)
  }

  async #save(routes: readonly Route[], soon: boolean): Promise<void> {
    const write = () => {
      const save = this.#database.statement(sql.save)
      const touch = this.#database.statement(sql.touch)
      for (const { owner, kind, id, agent, context, at, words, claim } of routes) {
        const text = words === undefined ? null : JSON.stringify(words)
        const claimed = [claim?.until ?? null, claim?.verifiedUntil ?? null]
        this.#hasKind.set(kind, true)
        save.run(owner, kind, id, agent, context ?? null, at, text, ...claimed)
        if (kind === 'task') touch.run(owner, agent, at)
      }
    }
    await (soon ? this.#database.writeSoon(write) : this.#database.write(write))
  }

  async verifyClaim({ owner, kind, id, agent }: Route, verifiedUntil: number): Promise<void> {
    await this.#queued.flush()
    await this.#run(sql.verifyClaim, verifiedUntil, owner, kind, id, agent)
  }

  async claim(route: Route): Promise<Route> {
    const { owner, kind, id, agent, at } = route
    await this.#queued.flush()
    const row = await this.#database.write(() => {
      this.#hasKind.set(kind, true)
      this.#database.statement(sql.claim).run(owner, kind, id, agent, at)
      return this.#database.statement(sql.find).get(owner, kind, id)
    })
    return routeOf({ ...row, owner, kind, id })
  }

  /** `placing` is not stored, because no other gateway uses this database. */
  async exchange({ owner, kind, id, agent }: Route, after: Route | undefined): Promise<boolean> {
    const same = [owner, kind, id, agent]
    await this.#queued.flush()
    return this.#database.write(() => {
      const { changes } =
        after === undefined
          ? this.#database.statement(sql.letGo).run(...same)
          : this.#database.statement(sql.move).run(after.agent, after.at, ...same)
      return Number(changes) === 1
    })
  }

  async remove(owner: string, kind: RouteKind, id: string): Promise<void> {
    await this.#queued.flush()
    await this.#run(sql.remove, owner, kind, id)
  }

  async removeContext(owner: string, context: string): Promise<void> {
    await this.#queued.flush()
    await this.#database.write(() => {
      this.#database.statement(sql.removeContext).run(owner, context)
      this.#database.statement(sql.remove).run(owner, 'context', context)
    })
  }

  async saveUse(owner: string, agent: string): Promise<void> {
    await this.#database.writeSoon(() => this.#database.statement(sql.touch).run(owner, agent, Date.now()))
  }

  async agentsOf(owner: string, limit: number): Promise<string[]> {
    await this.#queued.flush()
    const rows = await this.#all(sql.agentsOf, owner, limit)
    return rows.map((row) => row['agent'] as string)
  }

  async claimedTasks({ owner, agent, id, from, to, limit }: ClaimedTasksQuery): Promise<Route[]> {
    await this.#queued.flush()
    const filters = Object.entries({
      'owner = ?': owner,
      'agent = ?': agent,
      'id = ?': id,
      'claim_until >= ?': from,
      'claim_until < ?': to,
    }).flatMap(([condition, value]) => (value === undefined ? [] : [{ condition, value }]))
    const where = filters.map(({ condition }) => ` AND ${condition}`).join('')
    const text = `SELECT ${routeColumns} FROM routes INDEXED BY routes_claims
      WHERE claim_until IS NOT NULL AND kind = 'task'${where} ORDER BY claim_until DESC, id DESC LIMIT ?`
    const rows = await this.#all(text, ...filters.map(({ value }) => value), limit)
    return rows.map(routeOf)
  }

  async waiting(agent: string, taskIds: readonly string[]): Promise<Route[]> {
    await this.#queued.flush()
    return this.#database.read(() => {
      const ask = this.#database.statement(sql.waiting)
      return taskIds.flatMap((id) => ask.all(id, agent).map(routeOf))
    })
  }

  async takeWords(owner: string, taskId: string): Promise<Record<string, number> | undefined> {
    const queued = this.#queued.takeWords(owner, taskId)
    if (queued !== undefined) return queued
    await this.#queued.flush()
    return this.#database.write(() => {
      const row = this.#database.statement(sql.find).get(owner, 'task', taskId)
      this.#database.statement(sql.takeWords).run(owner, taskId)
      return row && routeOf({ ...row, owner, kind: 'task', id: taskId }).words
    })
  }

  saveDecision(record: DecisionRecord, soon = false): Promise<void> {
    return this.#decisions.save(record, soon)
  }

  queueDecision(record: DecisionRecord): Promise<void> {
    return this.#decisions.queue(record)
  }

  findDecision(id: string): Promise<DecisionRecord | undefined> {
    return this.#decisions.find(id)
  }

  listDecisions(query: DecisionQuery): Promise<ListedDecision[]> {
    return this.#decisions.list(query)
  }

  addVerdict(id: string, verdict: Verdict): Promise<boolean> {
    return this.#decisions.addVerdict(id, verdict)
  }

  featuresOfTask(owner: string, task: string): Promise<TaskFeatures | undefined> {
    return this.#decisions.featuresOfTask(owner, task)
  }

  removeDecisionFeatures(context: string): Promise<void> {
    return this.#decisions.removeFeatures(context)
  }

  async trainingExamples(): Promise<TrainingExample[]> {
    return (await this.#all(sql.trainingExamples)).map(exampleOf)
  }

  async trainingExamplesOf(agent: string): Promise<TrainingExample[]> {
    return (await this.#all(sql.trainingExamplesOf, agent)).map(exampleOf)
  }

  async findTrainingExample(context: string, agent: string): Promise<TrainingExample | undefined> {
    const row = await this.#get(sql.findTrainingExample, context, agent)
    return row && exampleOf(row)
  }

  async saveTrainingExample(example: TrainingExample): Promise<void> {
    await this.#run(
      sql.saveTrainingExample,
      example.context,
      example.agent,
      example.at,
      JSON.stringify(example),
      example.removedWith ?? null,
    )
  }

  async removeTrainingExample(context: string, agent: string): Promise<void> {
    await this.#run(sql.removeTrainingExample, context, agent)
  }

  async removeTrainingExamplesOf(context: string): Promise<string[]> {
    const removed = await this.#database.write(() =>
      this.#database.statement(sql.removeTrainingExamplesOf).all(context, context),
    )
    return [...new Set(removed.map((row) => String(row['context'])))]
  }

  removeTrainingExamplesOfAgent(agent: string, caller?: string): Promise<number> {
    return this.#database.write(() => {
      const { changes } = this.#database
        .statement(sql.removeTrainingExamplesOfAgent)
        .run(agent, caller ?? null)
      return Number(changes)
    })
  }

  /** Always empty, because no other gateway uses this database. */
  async trainingExampleChanges(): Promise<TrainingExampleChanges> {
    return { learned: [], forgotten: [], forgottenOf: [] }
  }

  sentenceVectors(keys: readonly string[]): Promise<Map<string, Uint8Array>> {
    return this.#vectors.find(keys)
  }

  saveSentenceVectors(vectors: ReadonlyMap<string, Uint8Array>, at: number): Promise<void> {
    return this.#vectors.save(vectors, at)
  }

  markSentenceVectors(keys: readonly string[], used: { at: number; before: number }): Promise<void> {
    return this.#vectors.mark(keys, used)
  }

  async cursorKey(): Promise<Uint8Array> {
    return (await this.#get(sql.key))?.['key'] as Uint8Array
  }

  async removeOld(before: Parameters<RoutingStore['removeOld']>[0], limit: number): Promise<number> {
    await this.#queued.flush()
    return this.#database.write(() => {
      const run = (text: string, ...values: (string | number)[]) =>
        Number(this.#database.statement(text).run(...values).changes)
      const old = `DELETE FROM routes WHERE (owner, kind, id) IN
        (SELECT owner, kind, id FROM routes WHERE kind = ? AND at < ? LIMIT ?)`
      const expired = `DELETE FROM routes WHERE (owner, kind, id) IN
        (SELECT owner, kind, id FROM routes INDEXED BY routes_claims WHERE claim_until < ? LIMIT ?)`
      const examples = `DELETE FROM lessons WHERE (context, agent) IN (SELECT context, agent FROM lessons
         WHERE at < max(?, coalesce((SELECT at FROM lessons ORDER BY at DESC LIMIT 1 OFFSET ${trainingExamplesMax}), 0)) LIMIT ?)`
      return (
        run(old, 'task', before.routes, limit) +
        run(old, 'context', before.routes, limit) +
        run(old, 'session', before.routes, limit) +
        run(expired, before.claims, limit) +
        run(old, 'key', before.keys, limit) +
        run(old, 'priced', before.keys, limit) +
        run(old, 'unrated', before.keys, limit) +
        this.#decisions.removeOldNow(before.decisions, limit) +
        run(examples, before.trainingExamples, limit) +
        this.#vectors.removeOldNow(before.sentenceVectors, limit) +
        run('DELETE FROM route_agents WHERE at < ?', before.routes)
      )
    })
  }

  #get(text: string, ...values: (string | number)[]): Promise<Row | undefined> {
    return this.#database.read(() => this.#database.statement(text).get(...values))
  }

  #all(text: string, ...values: (string | number)[]): Promise<Row[]> {
    return this.#database.read(() => this.#database.statement(text).all(...values))
  }

  #mayHave(kind: RouteKind): boolean {
    let known = this.#hasKind.get(kind)
    if (known === undefined) {
      known = this.#database.readNow(() => this.#database.statement(sql.kind).get(kind) !== undefined)
      this.#hasKind.set(kind, known)
    }
    return known
  }

  async #run(text: string, ...values: (string | number | null)[]): Promise<void> {
    await this.#database.write(() => this.#database.statement(text).run(...values))
  }
}

export function routeOf(row: Row): Route {
  const { owner, kind, id, agent, context, at, words, claim_until: until, claim_verified_until } = row
  const route = { owner, kind, id, agent, at } as Route
  if (typeof until === 'number') route.claim = { until, verifiedUntil: Number(claim_verified_until ?? 0) }
  if (typeof context === 'string') route.context = context
  if (typeof words === 'string') route.words = JSON.parse(words)
  return route
}

const exampleOf = (row: Row): TrainingExample => JSON.parse(String(row['body']))
