import type { TaskMetrics } from '@parley/kit/process/metrics'
import { inSpan, type SpanOptions, tracing } from '@parley/kit/telemetry/tracing'
import { ParleyError } from '@parley/wire/errors'
import { isTerminal, taskStates } from '@parley/wire/model/task'
import { millisOf } from '@parley/wire/model/timestamp'
import type { EventBus } from '../events/event-bus.ts'
import type { GeneratedIds, Store, TaskRecord } from '../store/store.ts'
import { eventsAfter } from './task-events.ts'
import { apply, type Change } from './transitions.ts'

/** The listener is called after each commit. It must not block or throw. */
export type CommitListener = (before: TaskRecord, after: TaskRecord) => void

/** A concurrent update ends an attempt. More attempts than this indicate a bug. */
const attemptsMax = 20

/**
 * The only class that writes tasks. The transition table computes every change, which is committed together
 * with its events or not at all. Subscribers are notified only after the commit.
 */
export class TaskEngine {
  readonly store: Store
  readonly #bus: EventBus
  readonly #metrics: TaskMetrics
  readonly #agentId: string
  readonly #queueWait: { observe(seconds: number): void }
  readonly #committed: CommitListener
  readonly #accepted: (record: TaskRecord) => void
  readonly #watchers = new Map<string, (record: TaskRecord) => void>()

  constructor(parts: {
    store: Store
    bus: EventBus
    metrics: TaskMetrics
    agentId: string
    committed?: CommitListener | undefined
    /** Called after a task is created. Must not block or throw. */
    accepted?: ((record: TaskRecord) => void) | undefined
  }) {
    this.store = parts.store
    this.#bus = parts.bus
    this.#metrics = parts.metrics
    this.#agentId = parts.agentId
    // With the label resolved, because prom-client hashes all labels of each observation.
    this.#queueWait = parts.metrics.queueWait.labels(parts.agentId)
    this.#committed = parts.committed ?? (() => {})
    this.#accepted = parts.accepted ?? (() => {})
  }

  /** Creates the task (`Store.createTask`). Returns false if the id is taken. Resolves once the task is durable. */
  async create(record: TaskRecord, generated?: GeneratedIds): Promise<boolean> {
    const created = await traced(record, () => this.store.createTask(record, generated))
    if (!created) return false
    this.#count(undefined, record)
    this.#accepted(record)
    return true
  }

  /**
   * Applies the change to the current task and commits it. Retries if a concurrent update wins.
   * @throws ParleyError TaskNotFound when the task was removed, Unavailable after too many conflicts, and the
   * errors that `apply` throws when the change is not allowed
   */
  async change(from: TaskRecord, makeChange: (record: TaskRecord) => Change): Promise<TaskRecord> {
    let record = from
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const draft = this.draft(record)
      draft.apply(makeChange(record))
      if (await draft.commit()) return draft.record
      const current = await this.store.loadTask(from.id)
      if (current === undefined) throw new ParleyError('TaskNotFound', { data: { taskId: from.id } })
      record = current
    }
    throw new ParleyError('Unavailable', {
      message: 'Too many concurrent updates to this task',
      data: { taskId: from.id },
    })
  }

  /** Starts a draft that commits several changes at once. */
  draft(base: TaskRecord): TaskDraft {
    return new TaskDraft(base, (before, after, how) => this.#commit(before, after, how))
  }

  /**
   * Calls `onCommit` with each record of the task that this process commits, before subscribers are notified. Supports one
   * watcher per task; a later one replaces it.
   */
  watch(taskId: string, onCommit: (record: TaskRecord) => void): Disposable {
    this.#watchers.set(taskId, onCommit)
    return {
      [Symbol.dispose]: () => {
        if (this.#watchers.get(taskId) === onCommit) this.#watchers.delete(taskId)
      },
    }
  }

  /**
   * Reads the store to set the gauge of active tasks and the lifetime counters of terminal tasks. Called at
   * start-up, and repeatedly if other processes also change tasks.
   */
  async countStored(): Promise<void> {
    const counts = await this.store.countByState()
    this.#metrics.completed.reset()
    // States without tasks are reported as 0.
    for (const state of taskStates) {
      const labels = { agent_id: this.#agentId, state }
      const count = counts[state] ?? 0
      if (isTerminal(state)) this.#metrics.completed.inc(labels, count)
      else this.#metrics.active.set(labels, count)
    }
  }

  async #commit(
    before: TaskRecord,
    after: TaskRecord,
    { mayBeStored, soon }: CommitAttempt,
  ): Promise<boolean> {
    const isStored = async () =>
      (await this.store.commitTask(after, soon)) || (mayBeStored && (await this.#isStored(after)))
    if (!(await traced(after, isStored))) return false
    this.#count(before, after)
    this.#watchers.get(after.id)?.(after)
    this.#bus.publish(after.id, eventsAfter(after, before.events.length))
    this.#committed(before, after)
    return true
  }

  /** Returns whether an earlier attempt was stored although its response was lost. */
  async #isStored(record: TaskRecord): Promise<boolean> {
    const stored = await this.store.loadTask(record.id)
    return (
      stored?.version === record.version &&
      stored.updatedAt === record.updatedAt &&
      stored.lease?.holder === record.lease?.holder &&
      stored.events.at(-1)?.eventId === record.events.at(-1)?.eventId
    )
  }

  #count(before: TaskRecord | undefined, after: TaskRecord): void {
    if (before?.status.state === 'submitted') this.#countWait(before, after)
    // If there are several processes, only the store has the counts.
    if (!this.store.exclusive) return
    const agent = { agent_id: this.#agentId }
    const from = before?.status.state
    const to = after.status.state
    if (from === to) return
    if (from !== undefined) this.#metrics.active.dec({ ...agent, state: from })
    if (isTerminal(to)) this.#metrics.completed.inc({ ...agent, state: to })
    else this.#metrics.active.inc({ ...agent, state: to })
  }

  /** Counts how long a task waited for its handler. One commit may contain the start and the end of a task. */
  #countWait(before: TaskRecord, after: TaskRecord): void {
    for (let at = before.events.length; at < after.events.length; at += 1) {
      const event = after.events[at]
      if (event?.kind !== 'status-update' || event.status.state !== 'working') continue
      const waitedMs = millisOf(event.timestamp) - millisOf(before.status.timestamp)
      this.#queueWait.observe(Math.max(0, waitedMs) / 1000)
      return
    }
  }
}

/** Makes a commit a step of the current trace, or of the trace of the task. */
function traced(record: TaskRecord, commit: () => Promise<boolean>): Promise<boolean> {
  const active = tracing()
  if (active === undefined) return commit()
  const options: SpanOptions = {
    parent: active.current() ?? record.trace ?? 'none',
    attributes: {
      'parley.task.id': record.id,
      'parley.task.state': record.status.state,
      'parley.task.version': record.version,
    },
  }
  return inSpan('commit task', options, async (span) => {
    const isCommitted = await commit()
    if (!isCommitted) span.set({ 'parley.conflict': true })
    return isCommitted
  })
}

interface CommitAttempt {
  /** Whether an earlier attempt failed, but may have stored the change. */
  mayBeStored: boolean
  /** As for `Store.commitTask`. */
  soon: boolean
}

type Commit = (before: TaskRecord, after: TaskRecord, how: CommitAttempt) => Promise<boolean>

/** Changes in memory that one compare-and-set operation commits. */
export class TaskDraft {
  #base: TaskRecord
  #record: TaskRecord
  /** A commit failed, but its changes may have been stored. */
  #mayBeStored = false
  /** Another commit changed the task, so this draft's changes are outdated. */
  #conflicted = false
  readonly #commit: Commit

  constructor(base: TaskRecord, commit: Commit) {
    this.#base = base
    this.#record = base
    this.#commit = commit
  }

  /** The task with all of the draft's changes. */
  get record(): TaskRecord {
    return this.#record
  }

  /** Applies a change to the draft. @throws ParleyError when the transition is not allowed */
  apply(change: Change): void {
    const version = this.#base.version + 1
    // `apply` deletes fields, after which V8 keeps the record as a slow hash table. The copy has a hidden class again.
    this.#record = { ...apply(this.#record, change), version }
  }

  /** Replaces the lease before a commit is retried, because the lease started when the change was made. */
  extendLease(lease: { holder: string; until: number }): void {
    if (this.#record !== this.#base && this.#record.lease !== undefined)
      this.#record = { ...this.#record, lease }
  }

  /** Discards all changes made after the given record. */
  revertTo(to: TaskRecord): void {
    this.#record = to
    this.#mayBeStored = false
  }

  /**
   * Commits the changes. Returns false if another commit changed the task. In this case nothing is stored,
   * and later commits of this draft also return false. A commit that threw can be retried, even if only its
   * response was lost.
   * @param soon as for `Store.commitTask`
   */
  async commit(soon = false): Promise<boolean> {
    if (this.#conflicted) return false
    const [before, after] = [this.#base, this.#record]
    if (before === after) return true
    try {
      const committed = await this.#commit(before, after, { mayBeStored: this.#mayBeStored, soon })
      if (committed) this.#base = after
      else this.#conflicted = true
      this.#mayBeStored = false
      return committed
    } catch (error) {
      this.#mayBeStored = true
      throw error
    }
  }
}
