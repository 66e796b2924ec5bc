import type { TaskKey } from '../store/webhook-store.ts'

/** Names what was known of a task at one moment; undefined: nothing. */
export type Mark = number | undefined

/** Lets the processes of an agent know of tasks with a push config. What it loses is found by those who look through the configs. */
export interface Announcements {
  tell(task: TaskKey): void
  /** Resolves when all that others tell from now on will be heard. */
  listen(heard: (task: TaskKey) => void): Promise<void>
}

export interface SubscribedTasksOptions {
  max: number
  /** Every task may have one, whoever is known. */
  everyTask: boolean
  /** Somebody looks through all configs again and again: of too many tasks the oldest may be forgotten. */
  looked?: boolean
  hints?: Announcements | undefined
}

/**
 * Which tasks may have a push config, so that a commit of the others costs nothing. With more than it may hold every task may
 * have one, unless what was forgotten is found in another way.
 */
export class SubscribedTasks {
  /** An id that was cleared may be another task's, so that the id alone names none. */
  readonly #marks = new Map<string, number>()
  readonly #options: SubscribedTasksOptions
  #everyTask: boolean
  #last = 0

  constructor(options: SubscribedTasksOptions) {
    this.#options = options
    this.#everyTask = options.everyTask
  }

  /** Hears what other processes tell. */
  async listen(): Promise<void> {
    await this.#options.hints?.listen((task) => this.heardOf(task))
  }

  /** Tells the others as well. */
  add(task: TaskKey): void {
    this.heardOf(task)
    this.#options.hints?.tell(task)
  }

  heardOf(task: TaskKey): void {
    if (this.#everyTask) return
    const key = keyOf(task)
    if (!this.#marks.has(key) && this.#marks.size >= this.#options.max && !this.#forgetOne()) return
    this.#marks.set(key, ++this.#last)
  }

  mark(task: TaskKey): Mark {
    return this.#marks.get(keyOf(task))
  }

  /** @param mark of before it was asked who listens: a config that came meanwhile keeps the task */
  delete(task: TaskKey, mark: Mark): void {
    const key = keyOf(task)
    if (this.#marks.get(key) === mark) this.#marks.delete(key)
  }

  has(task: TaskKey): boolean {
    return this.#everyTask || (this.#marks.size > 0 && this.#marks.has(keyOf(task)))
  }

  #forgetOne(): boolean {
    const [oldest] = this.#marks.keys()
    if (this.#options.looked === true && oldest !== undefined) return this.#marks.delete(oldest)
    this.#everyTask = true
    return false
  }
}

const keyOf = ({ id, createdAt }: TaskKey) => `${id} ${createdAt}`
