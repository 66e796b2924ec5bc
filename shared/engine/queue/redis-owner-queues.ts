import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Job } from './scheduler.ts'

export interface RedisOwnerQueuesOptions {
  redis: Redis
  /** The prefix of every key. */
  prefix: string
  /** Maximum number of jobs per owner in the shared queue. */
  inQueueMax: number
}

/**
 * Moves jobs from an owner's backlog to the shared queue, up to the limit. Expects the variables `queued,
 * behind, owners, count, max`.
 */
const promote = `
  local moved = {}
  while redis.call('SCARD', queued) < max do
    local first = redis.call('ZPOPMIN', behind)
    if #first == 0 then break end
    redis.call('SADD', queued, first[1])
    redis.call('DECR', count)
    moved[#moved + 1] = first[1]
  end
  if redis.call('EXISTS', behind) == 0 then redis.call('SREM', owners, owner) end
  return moved`

/** How long a discarded job is remembered at least, for a process that is enqueueing it at the same time. */
const discardedKeptSeconds = 60

const parameters = `
  local queued, behind, owners = KEYS[1], KEYS[2], KEYS[3]
  local count, sequence, discarded = KEYS[4], KEYS[5], KEYS[6]
  local owner, max, job = ARGV[1], tonumber(ARGV[2]), ARGV[3]`

const scripts = {
  enqueue: `${parameters}
  if redis.call('ZSCORE', discarded, job) then return {} end
  if redis.call('SISMEMBER', queued, job) == 1 then return { job } end
  if redis.call('ZADD', behind, 'NX', redis.call('INCR', sequence), job) == 1 then
    redis.call('SADD', owners, owner)
    redis.call('INCR', count)
  end
  ${promote}`,
  dequeue: `${parameters}
  redis.call('SREM', queued, job)
  ${promote}`,
  discard: `${parameters}
  local now = redis.call('TIME')[1]
  redis.call('ZREMRANGEBYSCORE', discarded, '-inf', now - ${discardedKeptSeconds})
  redis.call('ZADD', discarded, now, job)
  redis.call('EXPIRE', discarded, ${discardedKeptSeconds})
  redis.call('SREM', queued, job)
  if redis.call('ZREM', behind, job) == 1 then redis.call('DECR', count) end
  ${promote}`,
}

/**
 * Schedules fairly across owners on top of a queue that does not know owners: only a limited number of
 * waiting jobs per owner is in the shared queue. The other jobs stay in an ordered backlog. When one of an
 * owner's jobs starts, the owner's next job moves to the end of the queue. A job in the queue therefore waits
 * for at most `inQueueMax` jobs of each other owner. `missing` and `refill` find jobs that were lost with
 * Redis or between two steps.
 */
export class RedisOwnerQueues {
  readonly #redis: Redis
  readonly #prefix: string
  readonly #max: number
  /** Owners whose waiting jobs are being counted, and the number of jobs enqueued in the meantime. */
  readonly #joins = new Map<string, { sent: number; readers: number }>()

  constructor({ redis, prefix, inQueueMax }: RedisOwnerQueuesOptions) {
    this.#redis = redis
    this.#prefix = prefix
    this.#max = inQueueMax
  }

  /**
   * Adds the job to the owner's backlog, unless it was discarded. Returns the jobs that should now be in the shared queue,
   * which may include this one.
   */
  enqueue(job: Job): Promise<Job[]> {
    const joins = this.#joins.get(job.owner)
    if (joins !== undefined) joins.sent += 1
    return this.#run(scripts.enqueue, ownerHash(job.owner), memberOf(job))
  }

  /** Removes a started job. Returns the jobs that should now be in the shared queue. */
  dequeue(job: Job): Promise<Job[]> {
    return this.#run(scripts.dequeue, ownerHash(job.owner), memberOf(job))
  }

  /** Removes a job that will not run. Returns the jobs that should now be in the shared queue. */
  discard(job: Job): Promise<Job[]> {
    return this.#run(scripts.discard, ownerHash(job.owner), memberOf(job))
  }

  /**
   * Returns those of the jobs that were discarded lately. A process calls this after it has added jobs to the shared queue,
   * because another request may have discarded them in the meantime.
   */
  async discarded(jobs: readonly Job[]): Promise<Job[]> {
    const pipeline = this.#redis.pipeline()
    for (const job of jobs) pipeline.zscore(`${this.#prefix}discarded`, memberOf(job))
    const answers = (await pipeline.exec()) ?? []
    return jobs.filter((_, i) => typeof answers[i]?.[1] === 'string')
  }

  /**
   * Calls `decide` with the number of the owner's waiting jobs, including every job that this process
   * enqueued earlier.
   */
  async decideOnWaiting<T>(owner: string, decide: (waiting: number) => T): Promise<T> {
    const key = ownerHash(owner)
    const joins = this.#joins.get(owner) ?? { sent: 0, readers: 0 }
    this.#joins.set(owner, joins)
    joins.readers += 1
    const sentBefore = joins.sent
    try {
      const counts = await this.#redis
        .pipeline()
        .scard(`${this.#prefix}queued:${key}`)
        .zcard(`${this.#prefix}behind:${key}`)
        .exec()
      const stored = (counts ?? []).reduce((sum, [error, count]) => {
        if (error !== null) throw error
        return sum + Number(count)
      }, 0)
      // The response does not include jobs that were sent after the request.
      return decide(stored + joins.sent - sentBefore)
    } finally {
      joins.readers -= 1
      if (joins.readers === 0) this.#joins.delete(owner)
    }
  }

  /**
   * Promotes the jobs that should be in the shared queue but are missing, because a process died between two
   * steps or could not report a started job. `queueKey` returns a job's key in the shared queue.
   */
  async refill(queueKey: (job: Job) => string): Promise<Job[]> {
    const moved: Job[] = []
    for (const owner of await this.#redis.smembers(`${this.#prefix}owners`)) {
      await this.#removeStale(`${this.#prefix}queued:${owner}`, queueKey)
      moved.push(...(await this.#run(scripts.dequeue, owner, '')))
    }
    return moved
  }

  /**
   * Removes entries for jobs that are no longer in the queue, because they would use up the limit forever. A
   * job that is currently being added may be among them, and then exceeds the limit.
   */
  async #removeStale(queued: string, queueKey: (job: Job) => string): Promise<void> {
    const members = await this.#redis.smembers(queued)
    const pipeline = this.#redis.pipeline()
    for (const member of members) pipeline.exists(queueKey(parseJob(member)))
    const answers = (await pipeline.exec()) ?? []
    const gone = members.filter((_, i) => answers[i]?.[1] === 0)
    if (gone.length > 0) await this.#redis.srem(queued, ...gone)
  }

  /** Returns the number of jobs in all backlogs. */
  async waiting(): Promise<number> {
    return Number((await this.#redis.get(`${this.#prefix}count`)) ?? 0)
  }

  /**
   * Returns the jobs that are neither in a backlog nor in the shared queue. `queueKey` returns a job's key in
   * the shared queue.
   */
  async missing(jobs: readonly Job[], queueKey: (job: Job) => string): Promise<Job[]> {
    const pipeline = this.#redis.pipeline()
    for (const job of jobs) {
      pipeline.exists(queueKey(job))
      pipeline.zscore(`${this.#prefix}behind:${ownerHash(job.owner)}`, memberOf(job))
    }
    const answers = (await pipeline.exec()) ?? []
    return jobs.filter((_, i) => answers[2 * i]?.[1] === 0 && answers[2 * i + 1]?.[1] === null)
  }

  async #run(script: string, owner: string, member: string): Promise<Job[]> {
    const keys = [`queued:${owner}`, `behind:${owner}`, 'owners', 'count', 'sequence', 'discarded']
    const fullKeys = keys.map((key) => this.#prefix + key)
    const promoted: unknown = await this.#redis.eval(
      script,
      fullKeys.length,
      ...fullKeys,
      owner,
      this.#max,
      member,
    )
    if (!Array.isArray(promoted)) throw new Error('Redis returned no list of jobs')
    return promoted.map((found) => parseJob(String(found)))
  }
}

/** Serializes the job. All processes produce the same result. */
function memberOf({ taskId, version, owner }: Job): string {
  return JSON.stringify({ taskId, version, owner })
}

/** Owner ids are external input, so keys contain only their hash. */
function ownerHash(owner: string): string {
  return hash('sha256', owner, 'base64url')
}

function parseJob(member: string): Job {
  return JSON.parse(member)
}
