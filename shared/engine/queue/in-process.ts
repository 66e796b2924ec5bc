import { OwnerCounts } from './owner-counts.ts'
import { OwnerQueues } from './owner-queues.ts'
import { type Job, jobKey, type Room, type Scheduler, type Slot, type Work } from './scheduler.ts'

/** Runs tasks in this process, `concurrency` at a time, waiting ones in turns over their owners. */
export class InProcessScheduler implements Scheduler {
  readonly #concurrency: number
  readonly #queues = new OwnerQueues<Job>((job) => ({ owner: job.owner, key: jobKey(job) }))
  /** Places that were claimed and not used yet. */
  readonly #held = new OwnerCounts()
  #work: Work | undefined
  #taken = 0
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
    return this.#queues.size + this.#held.total
  }

  get active(): number {
    return this.#taken
  }

  claimSlot(): Slot | undefined {
    if (!this.running || this.waiting > 0 || this.#taken >= this.#concurrency) return undefined
    this.#taken += 1
    let held = true
    const release = () => {
      if (held) this.#leave()
      held = false
    }
    return { runs: true, release }
  }

  async claimPlace(owner: string, room: Room): Promise<Slot | 'full' | 'owner_full'> {
    if (this.#queues.sizeOf(owner) + this.#held.of(owner) >= room.ofOwner) return 'owner_full'
    if (this.waiting >= room.all) return 'full'
    return { runs: false, release: this.#held.hold(owner) }
  }

  enqueue(job: Job, slot?: Slot): void {
    if (slot?.runs === true && this.#work !== undefined) {
      void this.#work(job).finally(() => slot.release())
      return
    }
    slot?.release()
    this.#queues.add(job)
    this.#takeUp()
  }

  discard(job: Job): void {
    this.#queues.remove(job)
  }

  async restore(jobs: readonly Job[]): Promise<void> {
    const known = new Set([...this.#queues].map(({ taskId }) => taskId))
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
  }

  #takeUp(): void {
    while (this.#work !== undefined && this.#taken < this.#concurrency) {
      const job = this.#queues.take()
      if (job === undefined) return
      this.#taken += 1
      void this.#work(job).finally(() => this.#leave())
    }
  }

  #leave(): void {
    this.#taken -= 1
    if (this.#taken === 0) this.#idle?.()
    this.#takeUp()
  }
}
