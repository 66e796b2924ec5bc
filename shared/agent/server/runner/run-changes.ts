import type { ChildTask } from '@parley/engine/store/store'
import type { TaskDraft } from '@parley/engine/tasks/engine'
import type { Change } from '@parley/engine/tasks/transitions'
import type { Message } from '@parley/wire/model/task'
import type { RunCalls } from '../../author/delegation.ts'

/**
 * The shortest time between two stored progress messages, and the share of the run's time so far that it is at least. The
 * number of events thus grows with the logarithm of the time: about 270 in an hour.
 */
const [progressEveryMs, progressShare] = [1000, 1 / 50]

/**
 * Stores what changes in a task during one run: the calls of other agents, and progress messages. These are changes of the
 * same draft as the end of the run, so they are committed one after another.
 */
export class RunChanges {
  readonly #draft: TaskDraft
  readonly #commit: () => Promise<boolean>
  readonly #opened = Promise.withResolvers<boolean>()
  readonly #began = performance.now()
  #calls: RunCalls | undefined
  #last: Promise<unknown> = Promise.resolve()
  #isClosed = false
  /** The newest progress message that is not stored yet. */
  #progress: Message | undefined
  /** Set while a progress message waits or is being stored. */
  #timer: NodeJS.Timeout | undefined
  #progressAt = Number.NEGATIVE_INFINITY

  /** @param commit commits the draft; false if another process has changed the task */
  constructor(draft: TaskDraft, commit: () => Promise<boolean>) {
    this.#draft = draft
    this.#commit = commit
  }

  /** Called after the commit with which the run begins. @param isOurs whether the commit succeeded */
  open(isOurs: boolean): void {
    this.#opened.resolve(isOurs)
  }

  /** At the end of the run, the calls that have ended since the last `save` are stored as well. */
  follow(calls: RunCalls): void {
    this.#calls = calls
  }

  /** Waits for the first commit of the run. @throws Error if the run is over or the task was changed elsewhere */
  async save(children: ChildTask[]): Promise<void> {
    await this.#store({ kind: 'children', children })
  }

  /** Stores the message soon. A newer message replaces one that still waits. */
  report(message: Message): void {
    this.#progress = message
    if (this.#timer !== undefined || this.#isClosed) return
    const now = performance.now()
    const gapMs = Math.max(progressEveryMs, (now - this.#began) * progressShare)
    this.#timer = setTimeout(() => void this.#storeProgress(), Math.max(0, this.#progressAt + gapMs - now))
  }

  async #storeProgress(): Promise<void> {
    const message = this.#progress
    this.#progress = undefined
    try {
      if (message !== undefined) await this.#store({ kind: 'progress', message })
    } catch {
      // The run is over, or its end fails for the same reason and reports it.
    }
    this.#progressAt = performance.now()
    this.#timer = undefined
    if (this.#progress !== undefined) this.report(this.#progress)
  }

  async #store(change: Change): Promise<void> {
    const isOurs = await this.#opened.promise
    const storing = this.#storeAfter(this.#last, change, isOurs)
    this.#last = storing.catch(() => {})
    await storing
  }

  async #storeAfter(last: Promise<unknown>, change: Change, isOurs: boolean): Promise<void> {
    await last
    if (!isOurs || this.#isClosed) throw over()
    this.#draft.apply(change)
    if (!(await this.#commit())) throw over()
  }

  /** Waits for the commit in progress and rejects later changes. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#opened.resolve(false)
    if (this.#calls === undefined && this.#timer === undefined) return
    clearTimeout(this.#timer)
    await this.#last
    if (this.#calls === undefined) return
    const { children } = this.#calls
    const { record } = this.#draft
    if (record.status.state === 'working' && children.length > 0 && children !== record.children)
      this.#draft.apply({ kind: 'children', children })
  }
}

const over = () => new Error('The run of this task is over, so it cannot call other agents.')
