import { DatabaseRefused } from '@parley/kit/database/errors'
import { ForeignLog, LogGap, SegmentLog } from '@parley/kit/database/segment-log'
import type { SecondWriter, SqliteDatabase, Statement } from '@parley/kit/database/sqlite/database'
import { gathered } from '@parley/kit/database/sqlite/group-commit'
import { bytesIn, integerIn } from '@parley/kit/database/sqlite/row'
import { ContextCounts } from './context-counts.ts'
import { flushTasks } from './flush.ts'
import { FlushThread, threadsAllowed } from './flush-thread.ts'
import { decodeTasks, encodeTasks, type LoggedTask, recordLength, requireStorable } from './logged-task.ts'

/** A task whose last change has the given position in the log. */
type Kept = LoggedTask & { position: number }

interface Write {
  task: LoggedTask
  soon: boolean
  written: Promise<void>
  resolve: () => void
  reject: (reason: unknown) => void
}

/** How many tasks, and how many bytes of the log, are collected under load before they enter the tables. */
const [batchTasks, batchBytes] = [1024, 4 * 1024 * 1024]
/** How many tasks enter the tables at once without a thread, because the event loop waits for them. */
const inlineTasks = 128
/** How long a task stays in the log while the store is not under load. */
const idleMs = 250
/** The largest size of the kept tasks, in characters. Writes then wait until tasks have entered the tables. */
const keptMaxChars = 64 * 1024 * 1024
/** How long the thread is not used after it has failed. */
const threadRetryMs = 60_000
/** How long a write that does not wait for the disk may take to reach it. */
const syncMs = 1000

/**
 * The log of changed tasks in front of the tables `tasks` and `contexts`. A write appends its task to the log, together
 * with the other writes of the moment, and resolves once the log is on the disk. The tasks enter the tables later, in
 * large transactions and, under load, in another thread, so that a task that ends soon enters the tables and their
 * indexes once, in its last state. Until then, they are kept in memory for reads by id. Queries of the tables use
 * `readTables`.
 */
export class TaskLog implements SecondWriter {
  readonly #database: SqliteDatabase
  readonly #segments: SegmentLog
  readonly #thread: FlushThread | undefined
  /** The durable tasks that the tables do not contain yet, in the order of their last change. */
  readonly #kept = new Map<string, Kept>()
  readonly #keptContexts = new ContextCounts()
  #keptChars = 0
  /** The tasks that are being written. */
  readonly #pending = new Map<string, Write>()
  readonly #pendingContexts = new ContextCounts()
  readonly #queue: Write[] = []
  #writing: Promise<void> | undefined
  #isWriting = false
  /** The flush in the thread. Never rejects. */
  #flushing: Promise<void> | undefined
  /** The position of the last record whose tasks are kept or in the tables. */
  #position: number
  #lastSeq: number
  #idle: NodeJS.Timeout | undefined
  #sync: NodeJS.Timeout | undefined
  #flushDue = false
  #syncDue = false
  /** When the thread may be used again after a failure, by `performance.now()`. */
  #threadFrom = 0

  private constructor(parts: {
    database: SqliteDatabase
    segments: SegmentLog
    thread: FlushThread | undefined
  }) {
    this.#database = parts.database
    this.#segments = parts.segments
    this.#thread = parts.thread
    this.#position = parts.segments.position
    const last = parts.database.statement('SELECT coalesce(max(seq), 0) AS seq FROM tasks').get()
    this.#lastSeq = integerIn(last, 'seq')
  }

  /**
   * Opens the log of the database and moves what a killed process left in it into the tables.
   * @param file the database file
   * @throws DatabaseRefused if the log does not belong to this state of the database
   * @throws ParleyError Unavailable
   */
  static async open(database: SqliteDatabase, file: string): Promise<TaskLog> {
    const { id, position: after } = logPosition(database)
    const { log: segments, records } = await SegmentLog.open(taskLogFile(file), { id, after }).catch(
      (error: unknown) => {
        throw refusal(file, error)
      },
    )
    const thread = threadsAllowed() ? new FlushThread({ database: file, id }) : undefined
    const log = new TaskLog({ database, segments, thread })
    for (const { position, body } of records) {
      for (const task of decodeTasks(body)) log.#keep({ ...task, position })
    }
    // From here on, the database closes the log.
    database.share(log)
    // The first write repeats a failed attempt. Until then, a full disk must not keep the store from being read.
    await log.#recover().catch(() => {})
    return log
  }

  /** Returns the `seq` of a new task. */
  nextSeq(): number {
    this.#lastSeq += 1
    return this.#lastSeq
  }

  /** Returns the task if its last durable change is in the log. */
  get(id: string): LoggedTask | undefined {
    return this.#kept.get(id)
  }

  /** Returns the owner of a context that has durable changes in the log. */
  ownerOfContext(id: string): string | undefined {
    return this.#keptContexts.ownerOf(id)
  }

  /** Like `get`, with the changes that are being written. */
  current(id: string): LoggedTask | undefined {
    return this.#pending.get(id)?.task ?? this.#kept.get(id)
  }

  /** Like `ownerOfContext`, with the changes that are being written. */
  currentOwnerOfContext(id: string): string | undefined {
    return this.#pendingContexts.ownerOf(id) ?? this.#keptContexts.ownerOf(id)
  }

  /**
   * Writes a changed task. Resolves once it is on the disk. The caller has compared it with `current` in the same turn.
   * If it rejects, the change may have been stored.
   * @param soon whether to resolve once the change survives this process; it reaches the disk within a second
   * @throws ParleyError Unavailable; TypeError in the same turn for a task that the tables cannot store
   */
  write(task: LoggedTask, soon = false): Promise<void> {
    requireStorable(task)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const before = this.#pending.get(task.id)
    if (before !== undefined) this.#pendingContexts.remove(before.task)
    const write = { task, soon, written: promise, resolve, reject }
    this.#pending.set(task.id, write)
    this.#pendingContexts.add(task)
    this.#queue.push(write)
    this.#proceed()
    return promise
  }

  /** Returns a promise while a change of the task is being written. It resolves once reads see the change, or it has failed. */
  changing(id: string): Promise<void> | undefined {
    return this.#pending.get(id)?.written.catch(() => {})
  }

  /**
   * Reads the tables, which contain every task as it was when its last write resolved. The statements of `run` see the same
   * snapshot.
   * @param contextId the context to which the read is limited. The other tasks then stay in the log
   */
  async readTables<T>(run: () => T, contextId?: string): Promise<T> {
    const isComplete = () =>
      contextId === undefined ? this.#kept.size === 0 : this.#keptContexts.ownerOf(contextId) === undefined
    while (!isComplete() && this.#flushing !== undefined) await this.#flushing
    return isComplete() ? this.#database.readTogether(run) : this.#readFlushed(run)
  }

  /**
   * Moves all durable tasks into the tables.
   * @throws ParleyError Unavailable
   */
  async flush(): Promise<void> {
    while (this.#flushing !== undefined) await this.#flushing
    this.#flushNow(this.#kept.size)
  }

  writing(): Promise<void> | undefined {
    return this.#flushing
  }

  async closing(): Promise<void> {
    await this.#writing
    clearTimeout(this.#idle)
    clearTimeout(this.#sync)
    try {
      await this.flush()
      await this.#database.synced()
      await this.#segments.reset(this.#position)
    } catch {
      // The log is durable and enters the tables at the next start.
    }
    await this.#thread?.[Symbol.asyncDispose]()
    await this.#segments[Symbol.asyncDispose]()
  }

  #readFlushed<T>(run: () => T): Promise<T> {
    try {
      this.#flushNow(this.#kept.size)
    } catch {
      // Nothing can be written, for example because the disk is full. The tasks enter the tables for this read only.
      return this.#database.read(() =>
        this.#database.writeNow(() => {
          flushTasks(this.#database, this.#kept.values(), 0)
          return run()
        }, false),
      )
    }
    return this.#database.readTogether(run)
  }

  #proceed(): void {
    if (this.#isWriting) return
    this.#isWriting = true
    this.#writing = this.#writeAll()
  }

  async #writeAll(): Promise<void> {
    while (this.#queue.length > 0 || this.#syncDue || this.#flushDue) {
      await gathered(this.#queue)
      const group = this.#queue.splice(0, recordLength(this.#queue))
      const isSyncDue = this.#syncDue
      this.#syncDue = false
      try {
        if (this.#keptChars > keptMaxChars) await this.flush()
        if (this.#segments.hasFailed) await this.#recover()
        if (group.length > 0) this.#settle(group, await this.#append(group))
        if (isSyncDue) await this.#segments.sync()
      } catch (error) {
        this.#reject(group, error)
      }
      const isFull = this.#kept.size > batchTasks || this.#segments.activeBytes > batchBytes
      if (isFull || this.#flushDue) await this.#flushSome(group.length)
      this.#flushDue = false
    }
    this.#isWriting = false
  }

  async #append(group: Write[]): Promise<number> {
    const soon = group.every((write) => write.soon)
    const position = await this.#segments.append(encodeTasks(group.map(({ task }) => task)), soon)
    if (soon) this.#sync ??= setTimeout(() => this.#syncNow(), syncMs).unref()
    return position
  }

  #syncNow(): void {
    this.#sync = undefined
    this.#syncDue = true
    this.#proceed()
  }

  #settle(group: Write[], position: number): void {
    for (const write of group) {
      this.#keep({ ...write.task, position })
      this.#drop(write)
    }
    this.#position = position
    for (const { resolve } of group) resolve()
    this.#idle ??= setTimeout(() => this.#flushIdle(), idleMs).unref()
  }

  /** Rejects the writes, and those after them, which may have been compared with them. */
  #reject(group: Write[], error: unknown): void {
    const reason = this.#database.failed(error)
    for (const write of [...group, ...this.#queue.splice(0)]) {
      this.#drop(write)
      write.reject(reason)
    }
  }

  /** Makes the log usable after a failure, and at the start. @throws ParleyError Unavailable */
  async #recover(): Promise<void> {
    await this.flush()
    await this.#database.synced()
    await this.#segments.reset(this.#position)
  }

  #flushIdle(): void {
    this.#idle = this.#kept.size > 0 ? setTimeout(() => this.#flushIdle(), idleMs).unref() : undefined
    this.#flushDue = this.#kept.size > 0
    this.#proceed()
  }

  /**
   * Moves tasks into the tables: many of them in the thread, few of them immediately.
   * @param written number of tasks that were written since the last call
   */
  async #flushSome(written: number): Promise<void> {
    if (this.#flushing !== undefined) return
    const isThreadUsed = this.#kept.size > inlineTasks && performance.now() >= this.#threadFrom
    const thread = isThreadUsed ? this.#thread : undefined
    try {
      await this.#segments.sync()
      const isDue = thread !== undefined || this.#segments.activeBytes > batchBytes
      const full = isDue ? this.#segments.rotate() : undefined
      // Without a thread, more tasks are moved than written, so that the log does not grow.
      if (thread === undefined || full === undefined) return this.#flushNow(inlineTasks + written)
      this.#flushing = this.#flushInThread(thread, full).finally(() => (this.#flushing = undefined))
    } catch {
      // The log stays durable, and writes report the failure. The next write or read repeats the attempt.
    }
  }

  async #flushInThread(thread: FlushThread, { file, last }: { file: string; last: number }): Promise<void> {
    const { value: oldest } = this.#kept.values().next()
    // A read has moved all tasks in the meantime.
    if (oldest === undefined) return
    try {
      await thread.flush({ file, after: oldest.position - 1, last })
      this.#forgetUntil(last)
      this.#segments.release(last)
    } catch {
      // The event loop moves the tasks in the meantime.
      this.#threadFrom = performance.now() + threadRetryMs
    }
  }

  /** Moves the oldest tasks into the tables, about as many as given. The thread must not be writing. */
  #flushNow(count: number): void {
    if (this.#kept.size === 0) return
    const { tasks, position } = this.#oldest(count)
    this.#database.writeNow(() => flushTasks(this.#database, tasks, position))
    this.#forgetUntil(position)
    // If the sync fails, the records stay in the log, and entering the tables again changes nothing.
    this.#database.synced().then(
      () => this.#segments.release(position),
      () => {},
    )
  }

  /** The tasks of the oldest records, about as many as given, and the position of the last of these records. */
  #oldest(count: number): { tasks: Kept[]; position: number } {
    const tasks: Kept[] = []
    for (const task of this.#kept.values()) {
      const last = tasks.at(-1)
      if (tasks.length >= count && last !== undefined && last.position !== task.position)
        return { tasks, position: last.position }
      tasks.push(task)
    }
    return { tasks, position: this.#position }
  }

  #keep(task: Kept): void {
    const before = this.#kept.get(task.id)
    if (before !== undefined) this.#forget(before)
    this.#kept.set(task.id, task)
    this.#keptContexts.add(task)
    this.#keptChars += task.body.length
    this.#lastSeq = Math.max(this.#lastSeq, task.seq)
  }

  #forget(task: Kept): void {
    this.#kept.delete(task.id)
    this.#keptContexts.remove(task)
    this.#keptChars -= task.body.length
  }

  #forgetUntil(position: number): void {
    for (const task of this.#kept.values()) {
      if (task.position > position) return
      this.#forget(task)
    }
  }

  /** Removes a write from the pending ones, unless a later one has replaced it. */
  #drop({ task, written }: Write): void {
    if (this.#pending.get(task.id)?.written !== written) return
    this.#pending.delete(task.id)
    this.#pendingContexts.remove(task)
  }
}

/** The log of a database file, without the numbers of its two files. */
export const taskLogFile = (databaseFile: string): string => `${databaseFile}-log`

/** Returns the identity of the log, and the position of the last record whose tasks are in the tables. */
export function logPosition(database: { statement(sql: string): Statement }): {
  id: Uint8Array
  position: number
} {
  const row = database.statement('SELECT log, position FROM task_log_position').get()
  return { id: bytesIn(row, 'log'), position: integerIn(row, 'position') }
}

function refusal(file: string, error: unknown): unknown {
  if (!(error instanceof LogGap || error instanceof ForeignLog)) return error
  const what = error instanceof LogGap ? 'continues a later state of' : 'belongs to another database than'
  return new DatabaseRefused(
    `The log ${file}-log.1 and ${file}-log.2 ${what} ${file}. If you have restored or replaced ${file}, ` +
      'delete these two files: they belong to the earlier state.',
    { cause: error },
  )
}
