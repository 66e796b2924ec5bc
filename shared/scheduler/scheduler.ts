/** A task that waits for a worker. Only its name is kept: what it holds stays in the store. */
export interface Job {
  taskId: string
  /** Whose turn it uses: callers take turns. */
  owner: string
}

/** Decides when and where a task runs. Delivery is at least once: the engine's compare-and-set makes it once. */
export interface Scheduler extends AsyncDisposable {
  ping(): Promise<void>
  /** True while tasks are taken up. */
  readonly running: boolean
  /** Tasks that wait; the bound is the caller's (`TASK_QUEUE_MAX`). */
  readonly waiting: number
  readonly active: number
  /** A place to run at once, when one is free and nobody waits; undefined otherwise. Give it to `enqueue` or release it. */
  claimSlot(): Slot | undefined
  /** A place in the line, counted as waiting from now on. Give it to `enqueue` or release it. */
  claimPlace(): Slot
  enqueue(job: Job, slot?: Slot): void
  /** Begins to take up tasks; `work` must not reject. */
  start(work: (job: Job) => Promise<void>): void
  /** Takes up no more tasks; resolves when those under way have ended or the signal aborts. */
  drain(signal: AbortSignal): Promise<void>
}

export interface Slot {
  /** True: a worker is free for the task. False: a place in the line. */
  readonly runs: boolean
  release(): void
}
