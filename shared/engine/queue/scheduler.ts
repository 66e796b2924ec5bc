/** A task that waits for a worker. Only its name is kept: what it holds stays in the store. */
export interface Job {
  taskId: string
  /** Of the record that waits: the same task may wait again after a pause, and is another job then. */
  version: number
  /** Waiting tasks are taken in turns over their owners. */
  owner: string
}

/** Names the job: the same task in a later version is another one. */
export function jobKey({ taskId, version }: Pick<Job, 'taskId' | 'version'>): string {
  return `${taskId}-${version}`
}

/** Decides when and where a task runs. Delivery is at least once: the engine's compare-and-set makes it once. */
export interface Scheduler extends AsyncDisposable {
  ping(): Promise<void>
  /** True while tasks are taken up. */
  readonly running: boolean
  /** Tasks that wait, in all processes of the agent. */
  readonly waiting: number
  /** Tasks that this process runs. */
  readonly active: number
  /** A place to run at once, when one is free and nobody waits; undefined otherwise. Give it to `enqueue` or release it. */
  claimSlot(): Slot | undefined
  /**
   * A place in the queue, counted as waiting from now on. Give it to `enqueue` or release it. `full` and `owner_full`: as many
   * wait as `room` allows, in all or of this owner. Claims of one process never exceed the room together; where processes share
   * the queue, what the others accept at the same moment (of all owners: within a second) may come on top.
   * @throws ParleyError Unavailable when the queue cannot be reached
   */
  claimPlace(owner: string, room: Room): Promise<Slot | 'full' | 'owner_full'>
  enqueue(job: Job, slot?: Slot): void
  /** The job will not run: its place becomes free. Does nothing to one that was taken up already. */
  discard(job: Job): void
  /** Enqueues those that it does not know of: the store says that they wait, and a line may be lost. */
  restore(jobs: readonly Job[]): Promise<void>
  /**
   * Whether it is this process's turn to look for what the line has lost: once within that time, in one of the processes that
   * share the line. Rejects when it cannot be reached.
   */
  claimTurn(forMs: number): Promise<boolean>
  /** Begins to take up tasks. */
  start(work: Work): void
  /** Takes up no more tasks; resolves when those under way have ended or the signal aborts. */
  drain(signal: AbortSignal): Promise<void>
}

/**
 * Runs a task; must not reject. Resolves with the time (milliseconds since 1970) at which the task shall be delivered
 * again, where another process has it until then.
 */
export type Work = (job: Job) => Promise<number | undefined>

/** How many tasks may wait. */
export interface Room {
  all: number
  ofOwner: number
}

export interface Slot {
  /** True: a worker is free for the task. False: a place in the queue. */
  readonly runs: boolean
  release(): void
}
