import type { TaskKey } from '../store/webhook-store.ts'

/** The version of a task's entry, or undefined if there is none. */
export type Mark = number | undefined

/**
 * Announces tasks with push configs to the other processes of an agent. The periodic scan compensates for
 * lost announcements.
 */
export interface Announcements {
  announce(task: TaskKey): void
  /** Resolves once subsequent announcements from other processes will be received. */
  listen(onTask: (task: TaskKey) => void): Promise<void>
}

export interface SubscribedTasksOptions {
  max: number
  /** Whether to treat every task as possibly having a config. */
  matchAll: boolean
  /** Whether all configs are scanned periodically, so that the oldest entry may be evicted. */
  scanned?: boolean
  announcements?: Announcements | undefined
}

/**
 * Tracks the tasks that may have a push config, so that commits of other tasks cost nothing. Beyond its
 * limit, it evicts the oldest entry if a scan can find the config. Otherwise, it treats every task as having
 * a config.
 */
export class SubscribedTasks {
  /** Entries are keyed by id and creation time, because the id of a removed task may be reused. */
  readonly #marks = new Map<string, number>()
  readonly #options: SubscribedTasksOptions
  #matchAll: boolean
  #last = 0

  constructor(options: SubscribedTasksOptions) {
    this.#options = options
    this.#matchAll = options.matchAll
  }

  /** Starts to receive announcements from other processes. */
  async listen(): Promise<void> {
    await this.#options.announcements?.listen((task) => this.observe(task))
  }

  /** Adds the task in this process, and announces it to the other processes. */
  add(task: TaskKey): void {
    this.observe(task)
    this.#options.announcements?.announce(task)
  }

  observe(task: TaskKey): void {
    if (this.#matchAll) return
    const key = keyOf(task)
    if (!this.#marks.has(key) && this.#marks.size >= this.#options.max && !this.#evictOldest()) return
    this.#marks.set(key, ++this.#last)
  }

  mark(task: TaskKey): Mark {
    return this.#marks.get(keyOf(task))
  }

  /** Removes the entry unless a config was added later. @param mark read before the configs were listed */
  delete(task: TaskKey, mark: Mark): void {
    const key = keyOf(task)
    if (this.#marks.get(key) === mark) this.#marks.delete(key)
  }

  has(task: TaskKey): boolean {
    return this.#matchAll || (this.#marks.size > 0 && this.#marks.has(keyOf(task)))
  }

  #evictOldest(): boolean {
    const [oldest] = this.#marks.keys()
    if (this.#options.scanned === true && oldest !== undefined) return this.#marks.delete(oldest)
    this.#matchAll = true
    return false
  }
}

const keyOf = ({ id, createdAt }: TaskKey) => `${id} ${createdAt}`
