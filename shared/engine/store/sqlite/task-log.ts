import type { Participant, SqliteDatabase } from '@parley/kit/database/sqlite/database'
import { integerIn, textIn } from '@parley/kit/database/sqlite/row'
import { isTerminal, type TaskState } from '@parley/wire/model/task'
import type { TaskRow } from './record.ts'

/** A row of `tasks`, with the name for its context if it creates the context. */
export interface LoggedTask extends TaskRow {
  state: TaskState
  status_time: string
  context_name: string | null
}

/** The columns of a logged task before its body, in the order of the log. */
const columns = [
  'seq',
  'id',
  'owner',
  'context_id',
  'context_name',
  'state',
  'status_time',
  'created_at',
  'updated_at',
  'version',
  'lease_holder',
  'lease_until',
  'due_at',
  'large',
] as const satisfies (keyof LoggedTask)[]

/** How many tasks, and how many characters of their bodies, the log may contain before some enter the tables. */
const [tasksMax, charsMax] = [512, 4 * 1024 * 1024]
/** How many tasks enter the tables in one transaction, which blocks the event loop for a few milliseconds. */
const batchTasks = 128
/** How long a task stays in the log while the store is not under load. */
const idleMs = 250

const insertTask = `INSERT INTO tasks
  (seq, id, owner, context_id, state, status_time, created_at, updated_at, version, lease_holder, lease_until, due_at,
  large, body)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

const updateTask = `UPDATE tasks SET state = ?, status_time = ?, updated_at = ?, version = ?, lease_holder = ?,
  lease_until = ?, due_at = ?, large = ?, body = ? WHERE seq = ?`

/** Counts the task in its context and creates the context if it does not exist. */
const countInContext = `INSERT INTO contexts (id, owner, created_at, updated_at, name, task_count)
  VALUES (?, ?, ?, ?, ?, 1)
  ON CONFLICT (id) DO UPDATE SET task_count = task_count + 1, updated_at = max(updated_at, excluded.updated_at)`

/**
 * The log of changed tasks in front of the tables `tasks` and `contexts`. Each transaction appends its tasks to the
 * table `task_log` as one row, so that a commit writes a few adjacent pages instead of a page of each index, and a task
 * that ends soon enters the tables and their indexes once, in its last state. The log is a table of the same database,
 * so a commit is as durable as any other. Logged tasks are also kept in memory for reads by id; queries of the tables
 * use `readTables`.
 */
export class TaskLog implements Participant {
  readonly #database: SqliteDatabase
  /** The tasks that are in the log, in the order of their last change. */
  readonly #tasks = new Map<string, LoggedTask & { position: number }>()
  /** The contexts of these tasks, with the number of tasks. */
  readonly #contexts = new Map<string, { owner: string; tasks: number }>()
  #chars = 0
  /** The tasks that the current transaction changes. */
  #staged = new Map<string, LoggedTask>()
  /** The row of the log that the last settled transaction wrote. */
  #position = 0
  #lastSeq: number
  /** The highest `seq` in `tasks`. */
  #lastFlushedSeq: number
  #timer: NodeJS.Timeout | undefined
  #flushing = false

  private constructor(database: SqliteDatabase) {
    this.#database = database
    const max = database.statement('SELECT coalesce(max(seq), 0) AS seq FROM tasks').get()
    this.#lastFlushedSeq = integerIn(max, 'seq')
    this.#lastSeq = this.#lastFlushedSeq
  }

  /**
   * Opens the log and moves what a killed process left in it into the tables.
   * @throws ParleyError Unavailable
   */
  static open(database: SqliteDatabase): TaskLog {
    const log = new TaskLog(database)
    for (const row of database.statement('SELECT position, body FROM task_log ORDER BY position').iterate()) {
      log.#position = integerIn(row, 'position')
      for (const task of decode(textIn(row, 'body'))) {
        log.#lastSeq = Math.max(log.#lastSeq, task.seq)
        log.#keep(task)
      }
    }
    log.flush()
    database.join(log)
    return log
  }

  /** Returns the `seq` of a new task. */
  nextSeq(): number {
    this.#lastSeq += 1
    return this.#lastSeq
  }

  /** Returns the task if the log contains it. */
  get(id: string): LoggedTask | undefined {
    return this.#tasks.get(id)
  }

  /** Returns the owner of a context that has tasks in the log. */
  ownerOfContext(id: string): string | undefined {
    return this.#contexts.get(id)?.owner
  }

  /** Like `get`, with the changes of the current transaction. Call this inside a write. */
  current(id: string): LoggedTask | undefined {
    return this.#staged.get(id) ?? this.#tasks.get(id)
  }

  /** Like `ownerOfContext`, with the changes of the current transaction. Call this inside a write. */
  currentOwnerOfContext(id: string): string | undefined {
    for (const task of this.#staged.values()) if (task.context_id === id) return task.owner
    return this.ownerOfContext(id)
  }

  /** Adds a changed task to the current transaction. Call this as the last step of a write, which must not throw afterwards. */
  stage(task: LoggedTask): void {
    this.#staged.set(task.id, task)
  }

  /**
   * Moves all logged tasks into the tables.
   * @throws ParleyError Unavailable
   */
  flush(): void {
    this.#flush([...this.#tasks.values()])
  }

  /**
   * Reads the tables, which contain every task as it was when its last write resolved. The statements of `run` see the same
   * snapshot.
   * @param contextId the context to which the read is limited. The other tasks then stay in the log
   */
  readTables<T>(run: () => T, contextId?: string): Promise<T> {
    const isComplete = contextId === undefined ? this.#tasks.size === 0 : !this.#contexts.has(contextId)
    if (isComplete) return this.#database.readTogether(run)
    try {
      this.flush()
    } catch {
      // Nothing can be written, for example because the disk is full. The tasks enter the tables for this read only.
      const tasks = [...this.#tasks.values()]
      return this.#database.read(() =>
        this.#database.writeNow(() => {
          this.#apply(tasks)
          return run()
        }, false),
      )
    }
    return this.#database.readTogether(run)
  }

  begin(): void {
    if (this.#staged.size > 0) this.#staged = new Map()
  }

  beforeCommit(): void {
    if (this.#staged.size === 0) return
    const insert = this.#database.statement('INSERT INTO task_log (position, body) VALUES (?, ?)')
    insert.run(this.#position + 1, encode(this.#staged.values()))
  }

  settled(): void {
    if (this.#staged.size === 0) return
    this.#position += 1
    for (const task of this.#staged.values()) this.#keep(task)
    this.#staged = new Map()
    this.#schedule()
  }

  closing(): void {
    clearTimeout(this.#timer)
    try {
      this.flush()
    } catch {
      // The log is durable and enters the tables at the next start.
    }
  }

  #keep(task: LoggedTask): void {
    const before = this.#tasks.get(task.id)
    if (before !== undefined) this.#forget(before)
    this.#tasks.set(task.id, { ...task, position: this.#position })
    this.#chars += task.body.length
    const context = this.#contexts.get(task.context_id)
    if (context === undefined) this.#contexts.set(task.context_id, { owner: task.owner, tasks: 1 })
    else context.tasks += 1
  }

  #forget(task: LoggedTask): void {
    this.#tasks.delete(task.id)
    this.#chars -= task.body.length
    const context = this.#contexts.get(task.context_id)
    if (context === undefined) return
    context.tasks -= 1
    if (context.tasks === 0) this.#contexts.delete(task.context_id)
  }

  #schedule(): void {
    if (this.#flushing) return
    if (this.#tasks.size > tasksMax || this.#chars > charsMax) {
      this.#flushing = true
      setImmediate(() => this.#flushSome())
    }
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#flushSome()
    }, idleMs).unref()
  }

  #flushSome(): void {
    this.#flushing = false
    const oldest: (LoggedTask & { position: number })[] = []
    for (const task of this.#tasks.values()) {
      if (oldest.push(task) === batchTasks) break
    }
    try {
      this.#flush(oldest)
    } catch {
      // The log stays durable, and writes report the failure. The next write or read repeats the attempt.
      return
    }
    if (this.#tasks.size > 0) this.#schedule()
  }

  #flush(oldest: (LoggedTask & { position: number })[]): void {
    if (oldest.length === 0) return
    this.#database.writeNow(() => {
      this.#apply(oldest)
      const trim = this.#database.statement('DELETE FROM task_log WHERE position < ?')
      trim.run(this.#taskAfter(oldest.length)?.position ?? this.#position + 1)
    })
    for (const task of oldest) {
      this.#forget(task)
      this.#lastFlushedSeq = Math.max(this.#lastFlushedSeq, task.seq)
    }
  }

  /** Returns the oldest task after this number of tasks. */
  #taskAfter(count: number): (LoggedTask & { position: number }) | undefined {
    let passed = 0
    for (const task of this.#tasks.values()) {
      if (passed === count) return task
      passed += 1
    }
    return undefined
  }

  #apply(tasks: LoggedTask[]): void {
    const database = this.#database
    const find = database.statement('SELECT state FROM tasks WHERE seq = ?')
    const insert = database.statement(insertTask)
    const update = database.statement(updateTask)
    const count = database.statement(countInContext)
    const ended = new Map<TaskState, number>()
    for (const task of tasks) {
      const { seq, id, owner, context_id, context_name, state, status_time, created_at, updated_at } = task
      const { version, lease_holder, lease_until, due_at, large, body } = task
      const before = seq > this.#lastFlushedSeq ? undefined : find.get(seq)
      if (before === undefined) {
        count.run(context_id, owner, created_at, created_at, context_name)
        // biome-ignore format: one line for each group of columns
        insert.run(seq, id, owner, context_id, state, status_time, created_at, updated_at, version, lease_holder,
          lease_until, due_at, large, body)
      } else {
        // biome-ignore format: as above
        update.run(state, status_time, updated_at, version, lease_holder, lease_until, due_at, large, body, seq)
      }
      const wasEnded = before !== undefined && isTerminal(textIn(before, 'state') as TaskState)
      if (isTerminal(state) && !wasEnded) ended.set(state, (ended.get(state) ?? 0) + 1)
    }
    const countEnded = database.statement('UPDATE ended_counts SET count = count + ? WHERE state = ?')
    for (const [state, number] of ended) countEnded.run(number, state)
  }
}

/** The bodies, which are JSON already, are elements of the same array. */
function encode(tasks: Iterable<LoggedTask>): string {
  let text = ''
  for (const task of tasks) {
    text += `${text === '' ? '[' : ','}${JSON.stringify(columns.map((column) => task[column]))},${task.body}`
  }
  return `${text}]`
}

function* decode(text: string): Iterable<LoggedTask> {
  const items: unknown[] = JSON.parse(text)
  for (let at = 0; at < items.length; at += 2) {
    const values = items[at] as unknown[]
    const task = Object.fromEntries(columns.map((column, index) => [column, values[index]]))
    yield { ...(task as unknown as LoggedTask), body: JSON.stringify(items[at + 1]) }
  }
}
