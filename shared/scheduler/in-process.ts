import type { Job, Scheduler, Slot, Work } from './scheduler.ts'

/**
 * Runs tasks in this process, `concurrency` at a time. Each owner has a queue of its own and the queues take turns, so
 * that ten thousand tasks of one caller do not hold up another's.
 */
export class InProcessScheduler implements Scheduler {
  readonly #concurrency: number
  /** Insertion order is the order of turns: the owner served last stands last. */
  readonly #queues = new Map<string, Job[]>()
  #work: Work | undefined
  #taken = 0
  #waiting = 0
  #nextTurn = 0
  #idle: (() => void) | undefined

  constructor(concurrency: number) {
    this.#concurrency = concurrency
  }

  async ping(): Promise<void> {
    if (!this.running) throw new Error('scheduler is not running')
  }

  get running(): boolean {
    return this.#work !== undefined
  }

  get waiting(): number {
    return this.#waiting
  }

  get active(): number {
    return this.#taken
  }

  claimSlot(): Slot | undefined {
    if (!this.running || this.#waiting > 0 || this.#taken >= this.#concurrency) return undefined
    this.#taken += 1
    return slotOf(true, () => this.#leave())
  }

  claimPlace(): Slot {
    this.#waiting += 1
    return slotOf(false, () => (this.#waiting -= 1))
  }

  enqueue(job: Job, slot?: Slot): void {
    if (slot?.runs === true && this.#work !== undefined) {
      void this.#work(job).finally(() => slot.release())
      return
    }
    slot?.release()
    const queue = this.#queues.get(job.owner)
    if (queue === undefined) this.#queues.set(job.owner, [job])
    else queue.push(job)
    this.#waiting += 1
    this.#takeUp()
  }

  async restore(jobs: readonly Job[]): Promise<void> {
    const known = new Set([...this.#queues.values()].flatMap((queue) => queue.map(({ taskId }) => taskId)))
    for (const job of jobs) if (!known.has(job.taskId)) this.enqueue(job)
  }

  async claimTurn(forMs: number): Promise<boolean> {
    const now = performance.now()
    if (now < this.#nextTurn) return false
    this.#nextTurn = now + forMs
    return true
  }

  start(work: Work): void {
    this.#work = work
    this.#takeUp()
  }

  async drain(signal: AbortSignal): Promise<void> {
    this.#work = undefined
    if (this.#taken === 0 || signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#idle = resolve
    signal.addEventListener('abort', () => resolve(), { once: true })
    await promise
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#work = undefined
    this.#queues.clear()
    this.#waiting = 0
  }

  #takeUp(): void {
    while (this.#work !== undefined && this.#taken < this.#concurrency) {
      const job = this.#next()
      if (job === undefined) return
      this.#taken += 1
      void this.#work(job).finally(() => this.#leave())
    }
  }

  /** The first job of the owner whose turn it is; that owner goes to the end of the line. */
  #next(): Job | undefined {
    const turn = this.#queues.entries().next().value
    if (turn === undefined) return undefined
    const [owner, queue] = turn
    const job = queue.shift()
    this.#queues.delete(owner)
    if (queue.length > 0) this.#queues.set(owner, queue)
    this.#waiting -= 1
    return job
  }

  #leave(): void {
    this.#taken -= 1
    if (this.#taken === 0) this.#idle?.()
    this.#takeUp()
  }
}

function slotOf(runs: boolean, free: () => void): Slot {
  let held = true
  return {
    runs,
    release: () => {
      if (held) free()
      held = false
    },
  }
}
