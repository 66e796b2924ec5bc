/**
 * The least that SQLite needs to store the lives of tasks: prepared statements in one thread, without promises, checks of
 * ownership, idempotency or large parts. The file has the settings, columns and indexes that the queries of the port `Store` need, and
 * each row has the same values. Bodies are encoded by the caller and are not decoded.
 */
import { DatabaseSync, type StatementSync } from 'node:sqlite'

/** A task as the values of its columns. */
export interface RawTask {
  id: string
  owner: string
  contextId: string
  at: string
  submitted: string
  completed: string
}

const schema = `
  PRAGMA journal_mode = WAL;
  PRAGMA synchronous = FULL;
  PRAGMA wal_autocheckpoint = 2000;
  PRAGMA cache_size = -16384;
  PRAGMA temp_store = MEMORY;
  CREATE TABLE tasks (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    context_id TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    version INTEGER NOT NULL,
    lease_holder TEXT,
    lease_until INTEGER,
    due_at INTEGER,
    large INTEGER NOT NULL,
    body TEXT NOT NULL,
    status_at TEXT NOT NULL,
    open_state TEXT AS (CASE WHEN state IN ('completed', 'failed', 'canceled', 'rejected') THEN NULL ELSE state END) VIRTUAL,
    ended_state TEXT AS (CASE WHEN state IN ('completed', 'failed', 'canceled', 'rejected') THEN state END) VIRTUAL
  ) STRICT;
  CREATE INDEX open_of_owner ON tasks (open_state, owner, status_at) WHERE open_state IS NOT NULL;
  CREATE INDEX open_of_context ON tasks (open_state, context_id, status_at) WHERE open_state IS NOT NULL;
  CREATE INDEX ended_of_owner ON tasks (owner, ended_state) WHERE ended_state IS NOT NULL;
  CREATE INDEX ended_of_context ON tasks (context_id, ended_state) WHERE ended_state IS NOT NULL;
  CREATE INDEX ended_of_owner_by_status ON tasks (owner, ended_state, status_at) WHERE ended_state IS NOT NULL;
  CREATE INDEX ended_of_context_by_status ON tasks (context_id, ended_state, status_at) WHERE ended_state IS NOT NULL;
  CREATE INDEX ended_by_status ON tasks (ended_state, status_at) WHERE ended_state IS NOT NULL;
  CREATE INDEX due ON tasks (due_at) WHERE due_at IS NOT NULL;
  CREATE TABLE contexts (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    task_count INTEGER NOT NULL,
    name TEXT
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX contexts_of_owner ON contexts (owner, updated_at, id);
  CREATE TABLE ended_counts (state TEXT PRIMARY KEY, count INTEGER NOT NULL) STRICT, WITHOUT ROWID;
  INSERT INTO ended_counts VALUES ('completed', 0);
`

export class RawSqlite implements Disposable {
  readonly #database: DatabaseSync
  readonly #begin: StatementSync
  readonly #commit: StatementSync
  readonly #insertContext: StatementSync
  readonly #insertTask: StatementSync
  readonly #completeTask: StatementSync
  readonly #countCompleted: StatementSync
  readonly #findTask: StatementSync

  constructor(file: string) {
    this.#database = new DatabaseSync(file)
    this.#database.exec(schema)
    const prepare = (sql: string) => this.#database.prepare(sql)
    this.#begin = prepare('BEGIN IMMEDIATE')
    this.#commit = prepare('COMMIT')
    this.#insertContext = prepare(`INSERT INTO contexts (id, owner, created_at, updated_at, task_count)
      VALUES (?1, ?2, ?3, ?3, 1)
      ON CONFLICT (id) DO UPDATE SET task_count = task_count + 1, updated_at = excluded.updated_at`)
    this.#insertTask = prepare(`INSERT INTO tasks
      (id, owner, context_id, state, created_at, updated_at, version, large, body, status_at)
      VALUES (?1, ?2, ?3, 'submitted', ?4, ?4, 1, 0, ?5, ?4)`)
    this.#completeTask =
      prepare(`UPDATE tasks SET state = 'completed', updated_at = ?1, version = 2, body = ?2,
      status_at = ?1 WHERE id = ?3 AND version = 1`)
    this.#countCompleted = prepare("UPDATE ended_counts SET count = count + 1 WHERE state = 'completed'")
    this.#findTask = prepare('SELECT * FROM tasks WHERE id = ? AND owner = ?')
  }

  /** Creates, completes and finds the tasks: one durable commit for all creations and one for all completions. */
  lives(tasks: RawTask[]): void {
    this.#begin.run()
    for (const { id, owner, contextId, at, submitted } of tasks) {
      this.#insertContext.run(contextId, owner, at)
      this.#insertTask.run(id, owner, contextId, at, submitted)
    }
    this.#commit.run()
    this.#begin.run()
    for (const { id, at, completed } of tasks) {
      if (this.#completeTask.run(at, completed, id).changes !== 1) throw new Error(`task ${id} is missing`)
      this.#countCompleted.run()
    }
    this.#commit.run()
    for (const { id, owner } of tasks) this.#findTask.get(id, owner)
  }

  [Symbol.dispose](): void {
    this.#database.close()
  }
}
