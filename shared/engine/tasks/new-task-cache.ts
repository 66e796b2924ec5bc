import type { Job } from '../queue/scheduler.ts'
import { isLongerThan } from '../store/large-parts.ts'
import type { TaskRecord } from '../store/store.ts'

interface NewTask {
  record: TaskRecord
  firstOfContext: boolean
}

/** Maximum number of records, and maximum size of each record in JSON characters. */
const [recordsMax, recordMaxChars] = [1000, 16 * 1024]

/**
 * Caches the records of new tasks until their first run, which saves a read. It holds only tasks that this
 * process will run. An entry is removed when its task starts or ends.
 */
export class NewTaskCache {
  readonly #tasks = new Map<string, NewTask>()

  put(record: TaskRecord, firstOfContext: boolean): void {
    this.#tasks.delete(record.id)
    if (this.#tasks.size >= recordsMax || isLongerThan(record, recordMaxChars)) return
    this.#tasks.set(record.id, { record, firstOfContext })
  }

  /**
   * Removes and returns the entry. Returns undefined if the task has changed since then and the job refers to
   * a later version.
   */
  take({ taskId, version }: Pick<Job, 'taskId' | 'version'>): NewTask | undefined {
    const task = this.#tasks.get(taskId)
    this.#tasks.delete(taskId)
    return task?.record.version === version ? task : undefined
  }

  delete(taskId: string): void {
    this.#tasks.delete(taskId)
  }
}
