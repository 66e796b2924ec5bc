import { isTerminal } from '@parley/wire/model/task'
import type { TaskOutline } from '../store.ts'

/** Maximum number of tasks, and maximum size of each in JSON characters: at most 32 MiB of text. */
const [tasksMax, taskMaxChars] = [2000, 16 * 1024]

/**
 * Caches ended tasks without large parts, because clients that poll read the same ended task repeatedly. The store is
 * the only writer of its file, so an entry is valid until this process writes the task. The records are frozen.
 */
export class EndedTasks {
  readonly #tasks = new Map<string, TaskOutline>()

  get(id: string, owner: string): TaskOutline | undefined {
    const found = this.#tasks.get(id)
    return found?.task.owner === owner ? found : undefined
  }

  /** Stores the outline if it may be cached, and returns it. */
  keep(outline: TaskOutline, isWhole: boolean): TaskOutline {
    const { task, bytes } = outline
    if (!isWhole || bytes > taskMaxChars || !isTerminal(task.status.state)) return outline
    Object.freeze(task)
    if (this.#tasks.size >= tasksMax) {
      const oldest = this.#tasks.keys().next()
      if (oldest.done === false) this.#tasks.delete(oldest.value)
    }
    this.#tasks.set(task.id, outline)
    return outline
  }

  /** Runs a write of this task. A reader during the write may cache a state that is rolled back. */
  async changing<T>(id: string, write: () => Promise<T>): Promise<T> {
    this.#tasks.delete(id)
    try {
      return await write()
    } finally {
      this.#tasks.delete(id)
    }
  }

  /** Runs a write that removes any number of tasks. */
  async clearing<T>(write: () => Promise<T>): Promise<T> {
    this.#tasks.clear()
    try {
      return await write()
    } finally {
      this.#tasks.clear()
    }
  }
}
