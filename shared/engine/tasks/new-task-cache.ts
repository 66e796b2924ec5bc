import type { Job } from '../queue/scheduler.ts'
import { isLongerThan } from '../store/large-parts.ts'
import type { TaskRecord } from '../store/store.ts'

interface Fresh {
  record: TaskRecord
  firstOfContext: boolean
}

/** So many records of so many characters of JSON are kept at most. */
const [recordsMax, recordMaxChars] = [1000, 16 * 1024]

/**
 * Records of new tasks from their creation to their first run, which need not be read back from the store then. Only for
 * tasks that this process will run: an entry leaves when its run begins or its task ends.
 */
export class NewTaskCache {
  readonly #kept = new Map<string, Fresh>()

  keep(record: TaskRecord, firstOfContext: boolean): void {
    this.#kept.delete(record.id)
    if (this.#kept.size >= recordsMax || isLongerThan(record, recordMaxChars)) return
    this.#kept.set(record.id, { record, firstOfContext })
  }

  /** Undefined also where the task has changed since: the job is about a later version. */
  take({ taskId, version }: Pick<Job, 'taskId' | 'version'>): Fresh | undefined {
    const fresh = this.#kept.get(taskId)
    this.#kept.delete(taskId)
    return fresh?.record.version === version ? fresh : undefined
  }

  drop(taskId: string): void {
    this.#kept.delete(taskId)
  }
}
