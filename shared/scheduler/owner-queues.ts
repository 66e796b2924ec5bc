import { type Job, jobKey } from './scheduler.ts'

/** Waiting jobs, taken in turns over their owners; the jobs of one owner in the order in which they came. */
export class OwnerQueues {
  /** Insertion order is the order of turns: the owner that was served last is the last one. */
  readonly #queues = new Map<string, Map<string, Job>>()
  #size = 0

  get size(): number {
    return this.#size
  }

  sizeOf(owner: string): number {
    return this.#queues.get(owner)?.size ?? 0
  }

  taskIds(): Set<string> {
    return new Set([...this.#queues.values()].flatMap((jobs) => [...jobs.values()].map((job) => job.taskId)))
  }

  add(job: Job): void {
    const queue = this.#queues.get(job.owner) ?? new Map<string, Job>()
    this.#queues.set(job.owner, queue)
    this.#size -= queue.size
    queue.set(jobKey(job), job)
    this.#size += queue.size
  }

  /** The first job of the owner whose turn it is. */
  take(): Job | undefined {
    const [turn] = this.#queues
    if (turn === undefined) return undefined
    const [owner, queue] = turn
    const [first] = queue
    this.#queues.delete(owner)
    if (first === undefined) return this.take()
    queue.delete(first[0])
    this.#size -= 1
    if (queue.size > 0) this.#queues.set(owner, queue)
    return first[1]
  }

  remove(job: Job): void {
    const queue = this.#queues.get(job.owner)
    if (queue?.delete(jobKey(job)) !== true) return
    this.#size -= 1
    if (queue.size === 0) this.#queues.delete(job.owner)
  }

  clear(): void {
    this.#queues.clear()
    this.#size = 0
  }
}
