import type { TaskKey } from '../store/webhook-store.ts'

/** Names what was known of a task at one moment; undefined: nothing. */
export type Mark = number | undefined

/**
 * Which tasks may have a push config, so that a commit of the others costs nothing. With more than it may hold, or where
 * other processes register configs too, every task may have one.
 */
export class OpenTasks {
  /** An id that was cleared may be another task's, so that the id alone names none. */
  readonly #marks = new Map<string, number>()
  readonly #max: number
  #everyTask: boolean
  #last = 0

  constructor(options: { max: number; everyTask: boolean }) {
    this.#max = options.max
    this.#everyTask = options.everyTask
  }

  add(task: TaskKey): void {
    if (this.#everyTask) return
    const key = keyOf(task)
    if (this.#marks.has(key) || this.#marks.size < this.#max) this.#marks.set(key, ++this.#last)
    else this.#everyTask = true
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
}

const keyOf = ({ id, createdAt }: TaskKey) => `${id} ${createdAt}`
