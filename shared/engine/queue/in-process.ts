import { OwnerCounts } from './owner-counts.ts'
import { OwnerQueues } from './owner-queues.ts'
import { type Job, jobKey, type QueueLimits, type Scheduler, type Slot, type Work } from './scheduler.ts'

/** Runs up to `concurrency` tasks in this process. The owners of waiting tasks take turns. */
export class InProcessScheduler implements Scheduler {
  readonly #concurrency: number
  readonly #queues = new OwnerQueues<Job>((job) => ({ owner: job.owner, key: jobKey(job) }))
  /** Reserved places that have not been used yet. */
  readonly #reserved = new OwnerCounts()
  #work: Work | undefined
  #active = 0
  #nextSweepAt = 0
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
    return this.#queues.size + this.#reserved.total
  }

  get active(): number {
    return this.#active
  }

  claimSlot(): Slot | undefined {
    if (!this.running || this.waiting > 0 || this.#active >= this.#concurrency) return undefined
    this.#active += 1
    let claimed = true
    const release = () => {
      if (claimed) this.#release()
      claimed = false
    }
    return { runs: true, release }
  }

  async reserve(owner: string, limits: QueueLimits): Promise<Slot | 'full' | 'owner_full'> {
    if (this.#queues.sizeOf(owner) + this.#reserved.of(owner) >= limits.ofOwner) return 'owner_full'
    if (this.waiting >= limits.all) return 'full'
    return { runs: false, release: this.#reserved.acquire(owner) }
  }

  enqueue(job: Job, slot?: Slot): void {
    if (slot?.runs === true && this.#work !== undefined) {
      void this.#work(job).finally(() => slot.release())
      return
    }
    slot?.release()
    this.#queues.add(job)
    this.#startJobs()
  }

  discard(job: Job): void {
    this.#queues.remove(job)
  }

  async restore(jobs: readonly Job[]): Promise<void> {
    const queued = new Set([...this.#queues].map(({ taskId }) => taskId))
    for (const job of jobs) if (!queued.has(job.taskId)) this.enqueue(job)
  }

  async claimSweep(forMs: number): Promise<boolean> {
    const now = performance.now()
    if (now < this.#nextSweepAt) return false
    this.#nextSweepAt = now + forMs
    return true
  }

  start(work: Work): void {
    this.#work = work
    this.#startJobs()
  }

  async drain(signal: AbortSignal): Promise<void> {
    this.#work = undefined
    if (this.#active === 0 || signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#idle = resolve
    signal.addEventListener('abort', () => resolve(), { once: true })
    await promise
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#work = undefined
    this.#queues.clear()
  }

  #startJobs(): void {
    while (this.#work !== undefined && this.#active < this.#concurrency) {
      const job = this.#queues.take()
      if (job === undefined) return
      this.#active += 1
      void this.#work(job).finally(() => this.#release())
    }
  }

  #release(): void {
    this.#active -= 1
    if (this.#active === 0) this.#idle?.()
    this.#startJobs()
  }
}
