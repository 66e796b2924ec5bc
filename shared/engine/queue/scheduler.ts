/** A task that waits for a worker. The job only refers to the task, whose data stays in the store. */
export interface Job {
  taskId: string
  /** Version of the task record. A task that is queued again after a pause is a different job. */
  version: number
  /** Owners of waiting tasks take turns. */
  owner: string
}

/** Identifies the job. */
export function jobKey({ taskId, version }: Pick<Job, 'taskId' | 'version'>): string {
  return `${taskId}-${version}`
}

/**
 * Decides when and where a task runs. Jobs are delivered at least once; the engine's compare-and-set makes
 * sure that a task runs once.
 */
export interface Scheduler extends AsyncDisposable {
  ping(): Promise<void>
  /** Whether jobs are being started. */
  readonly running: boolean
  /** Number of waiting tasks in all processes of the agent. */
  readonly waiting: number
  /** Number of tasks that this process runs. */
  readonly active: number
  /** Claims a worker if one is free and no job waits. Pass the slot to `enqueue` or release it. */
  claimSlot(): Slot | undefined
  /**
   * Reserves a place in the queue, which counts as waiting. Pass it to `enqueue` or release it. `full` and
   * `owner_full`: the limit in total, or of this owner, is reached. The reservations of one process never
   * exceed the limits; with several processes, concurrent reservations of others (over all owners: of the
   * last second) may exceed them.
   * @throws ParleyError Unavailable when the queue is unreachable
   */
  reserve(owner: string, limits: QueueLimits): Promise<Slot | 'full' | 'owner_full'>
  enqueue(job: Job, slot?: Slot): void
  /** Removes a job that has not started, and frees its place. */
  discard(job: Job): void
  /** Enqueues the jobs that the queue has lost, although the store has them as waiting. */
  restore(jobs: readonly Job[]): Promise<void>
  /**
   * Claims the sweep for lost jobs: at most one process gets it per interval. Rejects when the queue is
   * unreachable.
   */
  claimSweep(forMs: number): Promise<boolean>
  /** Starts running jobs. */
  start(work: Work): void
  /** Starts no further jobs; resolves when the running ones have ended or the signal aborts. */
  drain(signal: AbortSignal): Promise<void>
}

/**
 * Runs a task. Must not reject. Resolves with the time (milliseconds since 1970) of a redelivery if another
 * process holds the task.
 */
export type Work = (job: Job) => Promise<number | undefined>

/** Maximum number of waiting tasks. */
export interface QueueLimits {
  all: number
  ofOwner: number
}

export interface Slot {
  /** True for a free worker, false for a place in the queue. */
  readonly runs: boolean
  release(): void
}
