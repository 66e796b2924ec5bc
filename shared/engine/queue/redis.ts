import { hash } from 'node:crypto'
import type { Redis } from 'ioredis'
import type { Job } from './scheduler.ts'

export interface OwnerLinesOptions {
  redis: Redis
  /** Begins every key. */
  prefix: string
  /** Jobs of one owner that wait in the queue at the same time. */
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
  discard: `${names}
  redis.call('SREM', queued, job)
  if redis.call('ZREM', behind, job) == 1 then redis.call('DECR', count) end
  ${moveUp}`,
}

/**
 * Turns over owners in a queue that knows no owners: only so many waiting jobs of one owner are in it at a time. The others are
 * kept behind, in order, and the next one goes to the end of the queue when one of them is taken up. So a job that has reached
 * the queue waits for at most `inQueueMax` of each other owner, however many they have. What is lost here with Redis, or between two
 * steps, is found by `missing` and `refill`.
 */
export class OwnerLines {
  readonly #redis: Redis
  readonly #prefix: string
  readonly #max: number
  /** Owners whose waiting jobs are being counted, with the jobs that were sent to join meanwhile. */
  readonly #joins = new Map<string, { sent: number; readers: number }>()

  constructor({ redis, prefix, inQueueMax }: OwnerLinesOptions) {
    this.#redis = redis
    this.#prefix = prefix
    this.#max = inQueueMax
  }

  /** The job stands behind its owner's others. Returns those that belong into the queue now, perhaps this one. */
  join(job: Job): Promise<Job[]> {
    const joins = this.#joins.get(job.owner)
    if (joins !== undefined) joins.sent += 1
    return this.#run(scripts.join, printOf(job.owner), memberOf(job))
  }

  /** The job was taken up. Returns those that belong into the queue in its place. */
  leave(job: Job): Promise<Job[]> {
    return this.#run(scripts.leave, printOf(job.owner), memberOf(job))
  }

  /** The job will not run. Returns those that belong into the queue in its place, if it was there. */
  discard(job: Job): Promise<Job[]> {
    return this.#run(scripts.discard, printOf(job.owner), memberOf(job))
  }

  /**
   * Calls `decide` with how many jobs of the owner wait, in the queue and behind. All that joined by this process until the call
   * are among them.
   */
  async waitingOf<T>(owner: string, decide: (waiting: number) => T): Promise<T> {
    const print = printOf(owner)
    const joins = this.#joins.get(owner) ?? { sent: 0, readers: 0 }
    this.#joins.set(owner, joins)
    joins.readers += 1
    const sentBefore = joins.sent
    try {
      const counts = await this.#redis
        .pipeline()
        .scard(`${this.#prefix}queued:${print}`)
        .zcard(`${this.#prefix}behind:${print}`)
        .exec()
      const stored = (counts ?? []).reduce((sum, [error, count]) => {
        if (error !== null) throw error
        return sum + Number(count)
      }, 0)
      // What was sent on this connection after the question is not in its answer.
      return decide(stored + joins.sent - sentBefore)
    } finally {
      joins.readers -= 1
      if (joins.readers === 0) this.#joins.delete(owner)
    }
  }

  /**
   * Those that could have moved up and did not, since a process ended between two steps, or could not say that it has taken up
   * its job. A job in the queue has the key that `queueKey` says.
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
