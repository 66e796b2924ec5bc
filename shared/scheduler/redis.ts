import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Job } from './scheduler.ts'

export interface OwnerLinesOptions {
  redis: Redis
  /** Begins every key. */
  prefix: string
  /** Jobs of one owner that stand in the queue at the same time, waiting or running. */
  inQueueMax: number
}

/** Lets as many of those who stand behind move up as there is room for. Expects `queued, behind, owners, count, max`. */
const moveUp = `
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

const names = `
  local queued, behind, owners, count, sequence = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
  local owner, max, job = ARGV[1], tonumber(ARGV[2]), ARGV[3]`

const scripts = {
  join: `${names}
  if redis.call('SISMEMBER', queued, job) == 1 then return { job } end
  if redis.call('ZADD', behind, 'NX', redis.call('INCR', sequence), job) == 1 then
    redis.call('SADD', owners, owner)
    redis.call('INCR', count)
  end
  ${moveUp}`,
  leave: `${names}
  redis.call('SREM', queued, job)
  ${moveUp}`,
}

/**
 * Callers take turns in a queue that knows no callers: only so many jobs of one owner stand in it, the others stand behind,
 * in order, and move up as those end. So a job waits for at most `inQueueMax` of each other owner, however many they have.
 * What is lost here with Redis, or between two steps, is found by `missing` and `refill`.
 */
export class OwnerLines {
  readonly #redis: Redis
  readonly #prefix: string
  readonly #max: number

  constructor({ redis, prefix, inQueueMax }: OwnerLinesOptions) {
    this.#redis = redis
    this.#prefix = prefix
    this.#max = inQueueMax
  }

  /** The job stands behind its owner's others. Returns those that belong into the queue now, perhaps this one. */
  join(job: Job): Promise<Job[]> {
    return this.#run(scripts.join, printOf(job.owner), memberOf(job))
  }

  /** The job is done. Returns those that belong into the queue in its place. */
  leave(job: Job): Promise<Job[]> {
    return this.#run(scripts.leave, printOf(job.owner), memberOf(job))
  }

  /**
   * Those that could have moved up and did not, since a process ended between two steps, or could not say that its job was
   * done. A job in the queue has the key that `queueKey` says.
   */
  async refill(queueKey: (job: Job) => string): Promise<Job[]> {
    const moved: Job[] = []
    for (const owner of await this.#redis.smembers(`${this.#prefix}owners`)) {
      await this.#forgetGone(`${this.#prefix}queued:${owner}`, queueKey)
      moved.push(...(await this.#run(scripts.leave, owner, '')))
    }
    return moved
  }

  /** They would hold their places for ever. One that is on its way into the queue may be among them: it comes on top then. */
  async #forgetGone(queued: string, queueKey: (job: Job) => string): Promise<void> {
    const members = await this.#redis.smembers(queued)
    const asked = this.#redis.pipeline()
    for (const member of members) asked.exists(queueKey(JSON.parse(member) as Job))
    const answers = (await asked.exec()) ?? []
    const gone = members.filter((_, i) => answers[i]?.[1] === 0)
    if (gone.length > 0) await this.#redis.srem(queued, ...gone)
  }

  /** How many stand behind, of all owners. */
  async waiting(): Promise<number> {
    return Number((await this.#redis.get(`${this.#prefix}count`)) ?? 0)
  }

  /** Those that stand neither behind others nor in the queue, where a job has the key that `queueKey` says. */
  async missing(jobs: readonly Job[], queueKey: (job: Job) => string): Promise<Job[]> {
    const asked = this.#redis.pipeline()
    for (const job of jobs) {
      asked.exists(queueKey(job))
      asked.zscore(`${this.#prefix}behind:${printOf(job.owner)}`, memberOf(job))
    }
    const answers = (await asked.exec()) ?? []
    return jobs.filter((_, i) => answers[2 * i]?.[1] === 0 && answers[2 * i + 1]?.[1] === null)
  }

  async #run(script: string, owner: string, member: string): Promise<Job[]> {
    const keys = [`queued:${owner}`, `behind:${owner}`, 'owners', 'count', 'sequence']
    const named = keys.map((key) => this.#prefix + key)
    const moved = (await this.#redis.eval(
      script,
      named.length,
      ...named,
      owner,
      this.#max,
      member,
    )) as string[]
    return moved.map((found) => JSON.parse(found) as Job)
  }
}

/** The same job is the same member, whoever writes it. */
function memberOf({ taskId, version, owner }: Job): string {
  return JSON.stringify({ taskId, version, owner })
}

/** Owners are named by others; a key holds no more than a hash of them. */
function printOf(owner: string): string {
  return hash('sha256', owner, 'base64url')
}
