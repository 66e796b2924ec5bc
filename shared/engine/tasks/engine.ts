import type { TaskMetrics } from '@parley/kit/process/metrics'
import { ParleyError } from '@parley/wire/errors'
import { isTerminal, taskStates } from '@parley/wire/model/task'
import type { EventBus } from '../events/event-bus.ts'
import type { Store, TaskRecord } from '../store/store.ts'
import { eventsAfter } from './task-events.ts'
import { apply, type Change } from './transitions.ts'

/** Told of each commit; must neither wait nor throw. */
export type CommitListener = (before: TaskRecord, after: TaskRecord) => void

/** Races over one task end after a few rounds; more means that something is wrong. */
const attemptsMax = 20

/**
 * The only writer of tasks. Every change is computed by the table of transitions and committed together with its events,
 * or not at all; only after the commit do followers hear of it.
 */
export class TaskEngine {
  readonly store: Store
  readonly #bus: EventBus
  readonly #metrics: TaskMetrics
  readonly #agentId: string
  readonly #committed: CommitListener

  constructor(parts: {
    store: Store
    bus: EventBus
    metrics: TaskMetrics
    agentId: string
    committed?: CommitListener | undefined
  }) {
    this.store = parts.store
    this.#bus = parts.bus
    this.#metrics = parts.metrics
    this.#agentId = parts.agentId
    this.#committed = parts.committed ?? (() => {})
  }

  /** False when the id is taken. Resolves when the task is durable. */
  async create(record: TaskRecord): Promise<boolean> {
    const created = await this.store.createTask(record)
    if (created) this.#count(undefined, record)
    return created
  }

  /**
   * Applies the change to the task as it is now and commits it, again and again while others change it at the same time.
   * @throws ParleyError TaskNotFound when it is gone, and what `apply` throws when the change is not allowed
   */
  async change(known: TaskRecord, makeChange: (record: TaskRecord) => Change): Promise<TaskRecord> {
    let record = known
    for (let attempt = 0; attempt < attemptsMax; attempt += 1) {
      const draft = this.draft(record)
      draft.apply(makeChange(record))
      if (await draft.commit()) return draft.record
      const fresh = await this.store.loadTask(known.id)
      if (fresh === undefined) throw new ParleyError('TaskNotFound', { data: { taskId: known.id } })
      record = fresh
    }
    throw new ParleyError('Unavailable', {
      message: 'Task is changed by too many at once',
      data: { taskId: known.id },
    })
  }

  /** Changes that follow each other within one turn and share a commit. */
  draft(base: TaskRecord): TaskDraft {
    return new TaskDraft(base, (before, after, unsure) => this.#commit(before, after, unsure))
  }

  /**
   * The gauge of tasks that have not ended and the lifetime counts of those that have, from the store: at a start, and again
   * and again where other processes change tasks too.
   */
  async countStored(): Promise<void> {
    const counts = await this.store.countByState()
    this.#metrics.completed.reset()
    // A state without tasks is shown as 0, not left out.
    for (const state of taskStates) {
      const labels = { agent_id: this.#agentId, state }
      const count = counts[state] ?? 0
      if (isTerminal(state)) this.#metrics.completed.inc(labels, count)
      else this.#metrics.active.set(labels, count)
    }
  }

  async #commit(before: TaskRecord, after: TaskRecord, unsure: boolean): Promise<boolean> {
    if (!(await this.store.commitTask(after)) && !(unsure && (await this.#isStored(after)))) return false
    this.#count(before, after)
    this.#bus.publish(after.id, eventsAfter(after, before.events.length))
    this.#committed(before, after)
    return true
  }

  /** An attempt whose answer was lost may have been the one that won. */
  async #isStored(record: TaskRecord): Promise<boolean> {
    const there = await this.store.loadTask(record.id)
    return (
      there?.version === record.version &&
      there.updatedAt === record.updatedAt &&
      there.lease?.holder === record.lease?.holder &&
      there.events.at(-1)?.eventId === record.events.at(-1)?.eventId
    )
  }

  #count(before: TaskRecord | undefined, after: TaskRecord): void {
    // Other processes count none of ours: the store knows all.
    if (!this.store.exclusive) return
    const agent = { agent_id: this.#agentId }
    const from = before?.status.state
    const to = after.status.state
    if (from === to) return
    if (from !== undefined) this.#metrics.active.dec({ ...agent, state: from })
    if (isTerminal(to)) this.#metrics.completed.inc({ ...agent, state: to })
    else this.#metrics.active.inc({ ...agent, state: to })
  }
}

type CommitAttempt = (before: TaskRecord, after: TaskRecord, unsure: boolean) => Promise<boolean>

/** Changes in memory, on the way to one compare-and-set commit. */
export class TaskDraft {
  #base: TaskRecord
  #record: TaskRecord
  /** An attempt failed, and may have been stored all the same. */
  #unsure = false
  /** Another commit took the version: the stored task is not the one that the changes were computed from. */
  #lost = false
  readonly #commit: CommitAttempt

  constructor(base: TaskRecord, commit: CommitAttempt) {
    this.#base = base
    this.#record = base
    this.#commit = commit
  }

  /** The task with the changes so far, committed or not. */
  get record(): TaskRecord {
    return this.#record
  }

  /** @throws ParleyError what the table of transitions refuses */
  apply(change: Change): void {
    const version = this.#base.version + 1
    this.#record = { ...apply(this.#record, change), version }
  }

  /** The lease that the commit will store began when the change was made: one that is tried again needs a new one. */
  prolong(lease: { holder: string; until: number }): void {
    if (this.#record !== this.#base && this.#record.lease !== undefined)
      this.#record = { ...this.#record, lease }
  }

  /** Back to a record of before: what was applied since can never be stored. */
  withdraw(to: TaskRecord): void {
    this.#record = to
    this.#unsure = false
  }

  /**
   * False when another commit changed the task since: nothing of the draft is stored then, and the draft is over. Every
   * later commit of it returns false too, whatever was applied in between. A commit that failed may be tried again, also
   * when only its answer was lost.
   */
  async commit(): Promise<boolean> {
    if (this.#lost) return false
    const [before, after] = [this.#base, this.#record]
    if (before === after) return true
    try {
      const committed = await this.#commit(before, after, this.#unsure)
      if (committed) this.#base = after
      else this.#lost = true
      this.#unsure = false
      return committed
    } catch (error) {
      this.#unsure = true
      throw error
    }
  }
}
