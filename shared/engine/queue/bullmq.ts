import { connectRedis, type RedisConnection } from '@parley/kit/process/redis'
import { ParleyError } from '@parley/wire/errors'
import { type Job as BullJob, DelayedError, Queue, WaitingError, Worker } from 'bullmq'
import type { Redis } from 'ioredis'
import { OwnerCounts } from './owner-counts.ts'
import { Places } from './places.ts'
import { OwnerLines } from './redis.ts'
import { type Job, jobKey, type Room, type Scheduler, type Slot, type Work } from './scheduler.ts'

export interface BullmqSchedulerOptions extends RedisConnection {
  /** Names the queue: all processes of an agent share one. */
  agentId: string
  /** Tasks that this process runs at a time. */
  concurrency: number
}

/** A job whose process is gone comes back after lock and two checks: within 10 s. */
const [lockMs, stalledCheckMs] = [5000, 2000]
/** How often the length of the line is asked for. */
const countEveryMs = 1000
const pingMs = 1000
/** The connection that waits for jobs is silent for up to 10 s. */
const workerSilentMaxMs = 15_000
/**
 * Waiting jobs of one owner in the queue, for each place that this process has; at least one. Few make the turns short, too few
 * would let places wait for the next job of the only owner.
 */
const inQueuePerPlace = 1 / 4
const restoreBatch = 500

/**
 * One queue for all processes of an agent, on Redis. A job is delivered at least once: that of a process that died, or
 * lost its connection for longer than its lock, goes to another one, and compare-and-set on the task decides. What Redis
 * loses is put back by `restore`.
 * @throws Error when no Redis answers
 */
export async function openBullmqScheduler(options: BullmqSchedulerOptions): Promise<Scheduler> {
  const redis = await connectRedis(options)
  // The worker waits for as long as it takes, for jobs and for a connection.
  const patient = {
    enableOfflineQueue: true,
    maxRetriesPerRequest: null,
    commandTimeout: undefined,
    socketTimeout: workerSilentMaxMs,
  }
  const workerRedis = await connectRedis({ ...options, options: patient }).catch((error: unknown) => {
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
  readonly #lines: OwnerLines
  readonly #countTimer: NodeJS.Timeout
  #running: Running | undefined
  readonly #places: Places
  #draining = false
  /** The queue as it was counted last, what is on its way into it, what has arrived since the count, and places that are held. */
  #counted = 0
  #counting: Promise<void> | undefined
  #arriving = 0
  #arrived = 0
  readonly #held = new OwnerCounts()
  /** What is written is refused: Redis has no memory left, or is a replica. */
  #refused = false

  constructor(redis: Redis, workerRedis: Redis, options: BullmqSchedulerOptions) {
    const { agentId, concurrency, log } = options
    this.#options = options
    this.#redis = redis
    this.#workerRedis = workerRedis
    this.#queue = new Queue(agentId, { connection: redis, prefix: 'parley', skipVersionCheck: true })
    this.#queue.on('error', (error) => log.debug({ err: error }, 'queue'))
    const inQueueMax = Math.max(1, Math.ceil(concurrency * inQueuePerPlace))
    this.#lines = new OwnerLines({ redis, prefix: `parley:{${agentId}}:line:`, inQueueMax })
    this.#places = new Places(concurrency, (limit, wasFull) => this.#limitQueue(limit, wasFull))
    this.#countTimer = setInterval(() => void this.#count(), countEveryMs)
    this.#countTimer.unref()
  }

  async ping(): Promise<void> {
    if (!this.running) throw new Error('scheduler is not running')
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(() => late.reject(new Error(`no answer within ${pingMs} ms`)), pingMs)
    try {
      await Promise.race([this.#write(), late.promise])
    } finally {
      clearTimeout(timer)
    }
  }

  get running(): boolean {
    return this.#running !== undefined && !this.#draining
  }

  /** What other processes did within the last second is not in it. */
  get waiting(): number {
    return this.#counted + this.#arriving + this.#arrived + this.#held.total
  }

  get active(): number {
    return this.#places.taken
  }

  /**
   * What a process runs without the queue is found by the others when its lease has ended, as the store tells. Without Redis
   * there is none: nobody could be told to stop it.
   */
  claimSlot(): Slot | undefined {
    if (!this.running || this.waiting > 0 || !this.#isThere) return undefined
    return this.#places.claim()
  }

  async claimPlace(owner: string, room: Room): Promise<Slot | 'full' | 'owner_full'> {
    if (!this.#isThere) throw unreachable()
    // The last count may be a second old: those that were taken up or canceled since are not waiting.
    if (this.waiting >= room.all) await this.#countWaiting()
    const claim = (waiting: number) => {
      if (waiting + this.#held.of(owner) >= room.ofOwner) return 'owner_full'
      if (this.waiting >= room.all) return 'full'
      return { runs: false, release: this.#held.hold(owner) }
    }
    // While few wait in all, no owner can have too many, whatever other processes did within the last second.
    if (this.waiting * 2 < room.ofOwner) return claim(0)
    return this.#lines.waitingOf(owner, claim).catch(() => {
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
      // A worker finds out when it takes the job up.
      this.#options.log.debug({ err: error, task_id: job.taskId }, 'job could not be discarded')
    })
  }

  async restore(jobs: readonly Job[]): Promise<void> {
    const queueKey = (job: Job) => this.#queue.toKey(jobKey(job))
    await this.#add(await this.#lines.refill(queueKey))
    for (let i = 0; i < jobs.length; i += restoreBatch) {
      const batch = jobs.slice(i, i + restoreBatch)
      const missing = await this.#lines.missing(batch, queueKey)
      for (const job of missing) await this.#enqueue(job)
    }
  }

  async claimTurn(forMs: number): Promise<boolean> {
    const key = `parley:{${this.#options.agentId}}:turn`
    return (await this.#redis.set(key, 1, 'PX', Math.ceil(forMs), 'NX')) === 'OK'
  }

  start(work: Work): void {
    const { agentId, log } = this.#options
    const worker = new Worker<Job, void>(agentId, (job, token) => this.#process(job, token), {
      connection: this.#workerRedis,
      prefix: 'parley',
      concurrency: this.#places.ofQueue,
      lockDuration: lockMs,
      stalledInterval: stalledCheckMs,
      // How often a task may be started is for the runner to say.
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      skipVersionCheck: true,
    })
    worker.on('error', (error) => log.debug({ err: error }, 'worker'))
    this.#running = { worker, work }
  }

  async drain(signal: AbortSignal): Promise<void> {
    this.#draining = true
    await this.#running?.worker.pause(true)
    await this.#places.empty(signal)
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
    const again = await work(job).finally(() => slot.release())
    // Another process has it, or it was cut off: whoever has a place looks at it.
    if (again !== undefined || this.#draining) await this.#tryEnqueue(job)
  }

  /** What the queue may have changes with what runs without it. */
  #limitQueue(limit: number, wasFull: boolean): void {
    const worker = this.#running?.worker
    if (worker === undefined || this.#draining) return
    worker.concurrency = limit
    if (!wasFull) return
    // One that has all it may have asks for no more until one of its jobs ends; going on makes it look again.
    void worker.pause(true).then(() => (this.#draining ? undefined : worker.resume()))
  }

  async #tryEnqueue(job: Job): Promise<void> {
    try {
      await this.#enqueue(job)
    } catch (error) {
      // The task is in the store: `restore` brings it back.
      this.#options.log.error({ err: error, task_id: job.taskId }, 'task could not be enqueued')
    }
  }

  async #enqueue(job: Job): Promise<void> {
    await this.#add(await this.#lines.join(job))
  }

  async #discard(job: Job): Promise<void> {
    const next = await this.#lines.discard(job)
    // One that is being run is locked, and stays.
    await this.#queue.remove(jobKey(job))
    await this.#add(next)
  }

  /** The next job of its owner comes into the queue. What fails here is made up for by `restore`. */
  async #leave(job: Job): Promise<void> {
    try {
      await this.#add(await this.#lines.leave(job))
    } catch (error) {
      this.#options.log.debug({ err: error, task_id: job.taskId }, 'the next job could not be brought up')
    }
  }

  async #add(jobs: readonly Job[]): Promise<void> {
    for (const job of jobs)
      await this.#queue.add('task', job, { jobId: jobKey(job), removeOnComplete: true, removeOnFail: true })
  }

  async #process(job: BullJob<Job, void>, token: string | undefined): Promise<void> {
    const { work } = this.#running as Running
    const left = this.#leave(job.data)
    const again = await this.#places.during(() => work(job.data))
    await left
    if (again !== undefined) {
      await job.moveToDelayed(again, token)
      throw new DelayedError()
    }
    if (this.#draining) {
      // The run may have been cut off: another process looks at the task.
      await job.moveToWait(token)
      throw new WaitingError()
    }
  }

  get #isThere(): boolean {
    return this.#redis.status === 'ready' && !this.#refused
  }

  /** One that answers may refuse all the same to keep what it is given. */
  async #write(): Promise<void> {
    await this.#redis.set(`parley:{${this.#options.agentId}}:written`, Date.now())
  }

  async #count(): Promise<void> {
    try {
      await this.#write()
      this.#refused = false
    } catch (error) {
      if (!this.#refused && this.#redis.status === 'ready')
        this.#options.log.error({ err: error }, 'Redis does not take what is written')
      this.#refused = true
    }
    await this.#countWaiting()
  }

  /** Those who ask while it is counted share the count. */
  #countWaiting(): Promise<void> {
    this.#counting ??= this.#countOnce().finally(() => (this.#counting = undefined))
    return this.#counting
  }

  async #countOnce(): Promise<void> {
    const arrived = this.#arrived
    try {
      const [queued, behind] = await Promise.all([
        this.#queue.getJobCountByTypes('waiting', 'delayed'),
        this.#lines.waiting(),
      ])
      this.#counted = queued + behind
      // Jobs that arrived while it was counted may not be in it.
      this.#arrived -= arrived
    } catch {
      // Counted again in a second; `ping` reports that Redis is away.
    }
  }
}

function unreachable(): ParleyError {
  return new ParleyError('Unavailable', { data: { reason: 'scheduler' }, headers: { 'retry-after': '2' } })
}
