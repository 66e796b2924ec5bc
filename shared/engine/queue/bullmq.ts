import { connectRedis, type RedisConnection } from '@parley/kit/process/redis'
import { ParleyError } from '@parley/wire/errors'
import { type Job as BullJob, DelayedError, Queue, WaitingError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { OwnerCounts } from './owner-counts.ts'
import { RedisOwnerQueues } from './redis-owner-queues.ts'
import { type Job, jobKey, type QueueLimits, type Scheduler, type Slot, type Work } from './scheduler.ts'
import { WorkerSlots } from './worker-slots.ts'

export interface BullmqSchedulerOptions extends RedisConnection {
  /** The name of the queue, which all processes of an agent share. */
  agentId: string
  /** Maximum number of tasks that this process runs concurrently. */
  concurrency: number
}

/** A dead process's job is redelivered after the lock time and two checks, which takes less than 10 s. */
const [lockMs, stalledCheckMs] = [5000, 2000]
/** How often the queue length is read. */
const countIntervalMs = 1000
const pingMs = 1000
/** Socket timeout for the worker's connection. Its blocking reads take up to 10 s. */
const workerSocketTimeoutMs = 15_000
/**
 * Maximum number of one owner's waiting jobs in the shared queue per worker slot of this process; always at
 * least one job. A small number keeps turns short, but a number that is too small leaves slots idle between
 * the jobs of a single owner.
 */
const inQueuePerSlot = 1 / 4
const restoreBatch = 500

/**
 * A queue in Redis that all processes of an agent share. Jobs are delivered at least once: if a process dies,
 * or is disconnected for longer than its lock, its job moves to another process, and compare-and-set on the
 * task decides which one runs it. `restore` replaces jobs that Redis has lost.
 * @throws Error when Redis is unreachable
 */
export async function openBullmqScheduler(options: BullmqSchedulerOptions): Promise<Scheduler> {
  const redis = await connectRedis(options)
  // The worker waits for jobs and for a connection without a timeout.
  const workerOptions = {
    enableOfflineQueue: true,
    maxRetriesPerRequest: null,
    commandTimeout: undefined,
    socketTimeout: workerSocketTimeoutMs,
  }
  const workerRedis = await connectRedis({ ...options, options: workerOptions }).catch((error: unknown) => {
    redis.disconnect()
    throw error
  })
  return new BullmqScheduler(redis, workerRedis, options)
}

type Running = { worker: Worker<Job, void>; work: Work }

class BullmqScheduler implements Scheduler {
  readonly #options: BullmqSchedulerOptions
  readonly #redis: Redis
  readonly #workerRedis: Redis
  readonly #queue: Queue<Job, void>
  readonly #owners: RedisOwnerQueues
  readonly #countTimer: NodeJS.Timeout
  #running: Running | undefined
  readonly #slots: WorkerSlots
  #draining = false
  /**
   * The last count of the queue, plus jobs that are being added, jobs that were added since then, and
   * reserved places.
   */
  #counted = 0
  #counting: Promise<void> | undefined
  #arriving = 0
  #arrived = 0
  readonly #reserved = new OwnerCounts()
  /** Whether Redis rejects writes, because it is out of memory or a replica. */
  #rejectsWrites = false

  constructor(redis: Redis, workerRedis: Redis, options: BullmqSchedulerOptions) {
    const { agentId, concurrency, log } = options
    this.#options = options
    this.#redis = redis
    this.#workerRedis = workerRedis
    this.#queue = new Queue(agentId, { connection: redis, prefix: 'parley', skipVersionCheck: true })
    this.#queue.on('error', (error) => log.debug({ err: error }, 'queue'))
    const inQueueMax = Math.max(1, Math.ceil(concurrency * inQueuePerSlot))
    this.#owners = new RedisOwnerQueues({ redis, prefix: `parley:{${agentId}}:line:`, inQueueMax })
    this.#slots = new WorkerSlots(concurrency, (limit, wasFull) => this.#limitQueue(limit, wasFull))
    this.#countTimer = setInterval(() => void this.#count(), countIntervalMs)
    this.#countTimer.unref()
  }

  async ping(): Promise<void> {
    if (!this.running) throw new Error('scheduler is not running')
    const timeout = Promise.withResolvers<never>()
    const timer = setTimeout(() => timeout.reject(new Error(`no response within ${pingMs} ms`)), pingMs)
    try {
      await Promise.race([this.#write(), timeout.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  get running(): boolean {
    return this.#running !== undefined && !this.#draining
  }

  /** Does not include changes that other processes made within the last second. */
  get waiting(): number {
    return this.#counted + this.#arriving + this.#arrived + this.#reserved.total
  }

  get active(): number {
    return this.#slots.used
  }

  /**
   * Claims a slot for a task outside the queue. Other processes recover the task when its lease expires.
   * Returns undefined without Redis, because a cancel request could not reach this process.
   */
  claimSlot(): Slot | undefined {
    if (!this.running || this.waiting > 0 || !this.#isAvailable) return undefined
    return this.#slots.claim()
  }

  async reserve(owner: string, limits: QueueLimits): Promise<Slot | 'full' | 'owner_full'> {
    if (!this.#isAvailable) throw unreachable()
    // The last count may be a second old, and may include jobs that have started or were canceled.
    if (this.waiting >= limits.all) await this.#countWaiting()
    const claim = (waiting: number) => {
      if (waiting + this.#reserved.of(owner) >= limits.ofOwner) return 'owner_full'
      if (this.waiting >= limits.all) return 'full'
      return { runs: false, release: this.#reserved.acquire(owner) }
    }
    // If few jobs are waiting in total, no owner can be at its limit, regardless of what other processes did
    // within the last second.
    if (this.waiting * 2 < limits.ofOwner) return claim(0)
    return this.#owners.decideOnWaiting(owner, claim).catch(() => {
      throw unreachable()
    })
  }

  enqueue(job: Job, slot?: Slot): void {
    if (slot?.runs === true && this.#running !== undefined) {
      void this.#runHere(job, slot, this.#running.work)
      return
    }
    slot?.release()
    this.#arriving += 1
    void this.#tryEnqueue(job).finally(() => {
      this.#arriving -= 1
      this.#arrived += 1
    })
  }

  discard(job: Job): void {
    this.#discard(job).catch((error: unknown) => {
      // The worker notices this when it starts the job.
      this.#options.log.debug({ err: error, task_id: job.taskId }, 'could not discard job')
    })
  }

  async restore(jobs: readonly Job[]): Promise<void> {
    const queueKey = (job: Job) => this.#queue.toKey(jobKey(job))
    await this.#add(await this.#owners.refill(queueKey))
    for (let i = 0; i < jobs.length; i += restoreBatch) {
      const batch = jobs.slice(i, i + restoreBatch)
      const missing = await this.#owners.missing(batch, queueKey)
      for (const job of missing) await this.#enqueue(job)
    }
  }

  async claimSweep(forMs: number): Promise<boolean> {
    const key = `parley:{${this.#options.agentId}}:turn`
    return (await this.#redis.set(key, 1, 'PX', Math.ceil(forMs), 'NX')) === 'OK'
  }

  start(work: Work): void {
    const { agentId, log } = this.#options
    const worker = new Worker<Job, void>(agentId, (job, token) => this.#process(job, token, work), {
      connection: this.#workerRedis,
      prefix: 'parley',
      concurrency: this.#slots.queueLimit,
      lockDuration: lockMs,
      stalledInterval: stalledCheckMs,
      // The runner limits the number of starts.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      skipVersionCheck: true,
    })
    worker.on('error', (error) => log.debug({ err: error }, 'worker'))
    this.#running = { worker, work }
  }

  async drain(signal: AbortSignal): Promise<void> {
    this.#draining = true
    await this.#running?.worker.pause(true)
    await this.#slots.whenIdle(signal)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#draining = true
    clearInterval(this.#countTimer)
    await this.#running?.worker.close(true).catch(() => {})
    await this.#queue.close().catch(() => {})
    this.#redis.disconnect()
    this.#workerRedis.disconnect()
  }

  async #runHere(job: Job, slot: Slot, work: Work): Promise<void> {
    const redeliverAt = await work(job).finally(() => slot.release())
    // Another process holds the task, or its run was interrupted. Any process may check it.
    if (redeliverAt !== undefined || this.#draining) await this.#tryEnqueue(job)
  }

  /** Adjusts the worker's concurrency to the number of tasks that run outside the queue. */
  #limitQueue(limit: number, wasFull: boolean): void {
    const worker = this.#running?.worker
    if (worker === undefined || this.#draining) return
    worker.concurrency = limit
    if (!wasFull) return
    // A worker at its limit fetches no job until one ends. Resuming the worker makes it fetch again.
    void worker.pause(true).then(() => (this.#draining ? undefined : worker.resume()))
  }

  async #tryEnqueue(job: Job): Promise<void> {
    try {
      await this.#enqueue(job)
    } catch (error) {
      // The task is in the store, so `restore` enqueues it again.
      this.#options.log.error({ err: error, task_id: job.taskId }, 'could not enqueue task')
    }
  }

  async #enqueue(job: Job): Promise<void> {
    await this.#add(await this.#owners.enqueue(job))
  }

  async #discard(job: Job): Promise<void> {
    const next = await this.#owners.discard(job)
    // A running job is locked and remains in the queue.
    await this.#queue.remove(jobKey(job))
    await this.#add(next)
  }

  /** Promotes the owner's next job. If this fails, `restore` promotes it later. */
  async #promoteNext(job: Job): Promise<void> {
    try {
      await this.#add(await this.#owners.dequeue(job))
    } catch (error) {
      this.#options.log.debug({ err: error, task_id: job.taskId }, 'could not promote the next job')
    }
  }

  async #add(jobs: readonly Job[]): Promise<void> {
    for (const job of jobs)
      await this.#queue.add('task', job, { jobId: jobKey(job), removeOnComplete: true, removeOnFail: true })
    if (jobs.length === 0) return
    for (const job of await this.#owners.discarded(jobs)) await this.#queue.remove(jobKey(job))
  }

  async #process(job: BullJob<Job, void>, token: string | undefined, work: Work): Promise<void> {
    const promoted = this.#promoteNext(job.data)
    const redeliverAt = await this.#slots.run(() => work(job.data))
    await promoted
    if (redeliverAt !== undefined) {
      await job.moveToDelayed(redeliverAt, token)
      throw new DelayedError()
    }
    if (this.#draining) {
      // The run may have been interrupted, so another process checks the task.
      await job.moveToWait(token)
      throw new WaitingError()
    }
  }

  get #isAvailable(): boolean {
    return this.#redis.status === 'ready' && !this.#rejectsWrites
  }

  /** Redis may respond to a ping but reject writes. */
  async #write(): Promise<void> {
    await this.#redis.set(`parley:{${this.#options.agentId}}:written`, Date.now())
  }

  async #count(): Promise<void> {
    try {
      await this.#write()
      this.#rejectsWrites = false
    } catch (error) {
      if (!this.#rejectsWrites && this.#redis.status === 'ready')
        this.#options.log.error({ err: error }, 'Redis rejects writes')
      this.#rejectsWrites = true
    }
    await this.#countWaiting()
  }

  /** Counts the waiting jobs. Concurrent callers share one count. */
  #countWaiting(): Promise<void> {
    this.#counting ??= this.#countOnce().finally(() => (this.#counting = undefined))
    return this.#counting
  }

  async #countOnce(): Promise<void> {
    const arrived = this.#arrived
    try {
      const [queued, behind] = await Promise.all([
        this.#queue.getJobCountByTypes('waiting', 'delayed'),
        this.#owners.waiting(),
      ])
      this.#counted = queued + behind
      // The result may not include jobs that were added during the count.
      this.#arrived -= arrived
    } catch {
      // The count is repeated within a second, and `ping` reports a Redis outage.
    }
  }
}

function unreachable(): ParleyError {
  return new ParleyError('Unavailable', { data: { reason: 'scheduler' }, headers: { 'retry-after': '2' } })
}
