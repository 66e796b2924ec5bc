import { hash } from 'node:crypto'
import { unavailable } from '@parley/kit/database/errors'
import { connectRedis, type RedisConnection } from '@parley/kit/process/redis'
import { ParleyError } from '@parley/wire/errors'
import type { Redis } from 'ioredis'
import type {
  Claim,
  ConfigKey,
  EventRange,
  ListedPushConfig,
  OpenPushConfig,
  PushConfig,
  Settlement,
  TaskKey,
  WebhookStore,
} from '../webhook-store.ts'
import { scripts } from './webhook-scripts.ts'

export interface RedisWebhooksOptions extends RedisConnection {
  /** Part of every key, which separates the data of different agents. */
  agentId: string
  /** Part of every key, which separates several collections of one agent. Default `webhooks`. */
  name?: string
  /** Maximum number of configs. Default 100,000. */
  max?: number
  /** Maximum number of configs with undelivered events per owner. Default half of `max`. */
  perOwnerMax?: number
  /**
   * How long configs with and without undelivered events are kept after their last change. Default 8 days and 1 day.
   */
  openMs?: number
  closedMs?: number
}

export interface SharedWebhooks extends WebhookStore, AsyncDisposable {
  /**
   * Returns false and changes nothing if the config already exists.
   * @throws ParleyError Unavailable
   */
  addPushConfig(config: PushConfig): Promise<boolean>
}

/** A config with undelivered events outlives the longest pause of a task, which is 7 days. */
const [openForMs, closedForMs] = [8 * 86_400_000, 86_400_000]

type Fields = Record<string, string>

/**
 * Push configs that all processes of the agent share. They are kept as long as their task and lost if Redis loses its
 * data. Each config is a hash. Two sorted sets list the configs with and without undelivered events; when the store
 * is full, the oldest config without undelivered events is removed. A set per owner limits the configs with
 * undelivered events.
 * @throws Error if Redis does not respond
 */
export async function openRedisWebhooks(options: RedisWebhooksOptions): Promise<SharedWebhooks> {
  const redis = await connectRedis({ ...options, options: { enableAutoPipelining: true } })
  return new RedisWebhooks(redis, options)
}

class RedisWebhooks implements SharedWebhooks {
  readonly #redis: Redis
  readonly #prefix: string
  readonly #bounds: { max: number; perOwnerMax: number; openMs: number; closedMs: number }

  constructor(redis: Redis, options: RedisWebhooksOptions) {
    const { agentId, name = 'webhooks', max = 100_000 } = options
    this.#redis = redis
    this.#prefix = `parley:{${agentId}}:${name}:`
    const { perOwnerMax = max / 2, openMs = openForMs, closedMs = closedForMs } = options
    this.#bounds = { max, perOwnerMax, openMs, closedMs }
  }

  savePushConfig(config: PushConfig, perTaskMax: number): Promise<boolean> {
    return this.#save(config, perTaskMax, true)
  }

  addPushConfig(config: PushConfig): Promise<boolean> {
    return this.#save(config, Number.MAX_SAFE_INTEGER, false)
  }

  async #save(config: PushConfig, perTaskMax: number, mayReplace: boolean): Promise<boolean> {
    const { revision, settled, open, health, resend: _resend, ...once } = config
    const said = [JSON.stringify(once), revision, settled, open ? 1 : 0, JSON.stringify(health)]
    const { max, perOwnerMax, openMs, closedMs } = this.#bounds
    const bounds = [perTaskMax, max, openMs, closedMs]
    const whose = [mayReplace ? 1 : 0, perOwnerMax, printOf(config.task.owner)]
    const saved = await this.#run('save', config, ...bounds, ...said, ...whose)
    if (saved !== -1) return saved === 1
    throw new ParleyError('Unavailable', {
      message: 'Too many webhooks are registered; use long_running true, which stores them in the database',
      data: { reason: 'webhooks_full' },
      headers: { 'retry-after': '60' },
    })
  }

  async findPushConfig(task: TaskKey, id: string): Promise<PushConfig | undefined> {
    return decode(await this.#asked(() => this.#redis.hgetall(this.#key({ task, id }))))
  }

  async listPushConfigs(task: TaskKey): Promise<PushConfig[]> {
    const print = printOfTask(task)
    const ids = await this.#asked(() => this.#redis.zrevrange(`${this.#prefix}task:${print}`, 0, -1))
    const found = ids.map((id) => this.#redis.hgetall(`${this.#prefix}config:${print}:${id}`))
    const fields = await this.#asked(() => Promise.all(found))
    return fields.map(decode).filter((config) => config !== undefined)
  }

  async removePushConfig(task: TaskKey, id: string, revision = ''): Promise<PushConfig | undefined> {
    return decode(pairsOf((await this.#run('remove', { task, id }, revision)) as string[]))
  }

  async settlePushConfig(
    config: Pick<PushConfig, 'task' | 'id' | 'revision'>,
    settlement: Settlement,
    sender = '',
  ): Promise<boolean> {
    const { settled, open, health, resend } = settlement
    const { openMs, closedMs } = this.#bounds
    const resent = [textOf(resend?.before), textOf(resend?.after)]
    const said = [settled, open ? 1 : 0, JSON.stringify(health), sender, openMs, closedMs, ...resent]
    return (await this.#run('settle', config, config.revision, ...said)) === 1
  }

  async resendPushConfig(
    config: Pick<PushConfig, 'task' | 'id' | 'revision'>,
    events: readonly EventRange[],
  ): Promise<boolean> {
    const { openMs, closedMs } = this.#bounds
    const scheduled = [config.revision, textOf(events), openMs, closedMs]
    return (await this.#run('resend', config, ...scheduled)) === 1
  }

  /** Lists open configs first, because the store keeps the others in order of completion. */
  async listAllPushConfigs(query: {
    limit: number
    cursor?: string | undefined
  }): Promise<ListedPushConfig[]> {
    const { limit, cursor = 'open +inf' } = query
    const [from = '', below = ''] = cursor.split(' ')
    const found: ListedPushConfig[] = []
    if (from === 'open') found.push(...(await this.#newest('open', below, limit)))
    const rest = limit - found.length
    if (rest > 0) found.push(...(await this.#newest('closed', from === 'open' ? '+inf' : below, rest)))
    return found
  }

  async #newest(set: 'open' | 'closed', below: string, limit: number): Promise<ListedPushConfig[]> {
    const found: ListedPushConfig[] = []
    for (let bound = below; found.length < limit; ) {
      const range = [`${this.#prefix}${set}`, bound === '+inf' ? bound : `(${bound}`, '-inf'] as const
      const members = await this.#asked(() =>
        this.#redis.zrevrangebyscore(...range, 'WITHSCORES', 'LIMIT', 0, limit),
      )
      const scores = Object.entries(pairsOf(members))
      const configs = scores.map(([member]) => this.#redis.hgetall(`${this.#prefix}config:${member}`))
      // A set may contain configs that have expired.
      for (const [i, fields] of (await this.#asked(() => Promise.all(configs))).entries()) {
        const [config, score = ''] = [decode(fields), scores[i]?.[1]]
        if (config !== undefined && found.length < limit) found.push({ config, cursor: `${set} ${score}` })
      }
      bound = scores.at(-1)?.[1] ?? ''
      if (scores.length < limit) break
    }
    return found
  }

  async claimPushConfig(key: ConfigKey, sender: string, forMs: number): Promise<Claim> {
    return (await this.#run('claim', key, sender, forMs)) as Claim
  }

  async renewPushConfig(key: ConfigKey, sender: string, forMs: number): Promise<boolean> {
    return (await this.#run('renew', key, sender, forMs)) === 1
  }

  async releasePushConfig(key: ConfigKey, sender: string): Promise<boolean> {
    return (await this.#run('release', key, sender)) === 1
  }

  async listOpenPushConfigs({
    limit,
    cursor = 0,
    unclaimed = false,
  }: {
    limit: number
    cursor?: number
    unclaimed?: boolean
  }): Promise<{ items: OpenPushConfig[]; nextCursor?: number }> {
    const key = [`${this.#prefix}open`, `${this.#prefix}config:`]
    const [next, ...found] = (await this.#asked(() =>
      this.#redis.eval(scripts.open, key.length, ...key, cursor, limit, unclaimed ? 1 : 0),
    )) as string[]
    const items: OpenPushConfig[] = []
    for (let i = 0; i + 2 < found.length; i += 3) {
      const { task, id, url } = JSON.parse(found[i] as string) as PushConfig
      const resends = found[i + 2] === '' ? {} : { resends: true as const }
      items.push({ task, id, url, settled: Number(found[i + 1]), ...resends })
    }
    return next === '' ? { items } : { items, nextCursor: Number(next) }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#redis.disconnect()
  }

  #key({ task, id }: ConfigKey): string {
    return `${this.#prefix}config:${printOfTask(task)}:${printOf(id)}`
  }

  #run(
    script: keyof typeof scripts,
    { task, id }: ConfigKey,
    ...args: (string | number)[]
  ): Promise<unknown> {
    const [ofTask, ofConfig] = [printOfTask(task), printOf(id)]
    const names = ['config:', 'task:', 'open', 'closed', 'sequence', 'owner:'].map(
      (name) => this.#prefix + name,
    )
    return this.#asked(() =>
      this.#redis.eval(scripts[script], names.length, ...names, ofTask, ofConfig, ...args),
    )
  }

  /** Hides driver errors from callers. */
  async #asked<T>(ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      throw unavailable(
        'Webhooks cannot be reached; register them with long_running true, which stores them in the database',
        error,
      )
    }
  }
}

function decode(fields: Fields): PushConfig | undefined {
  const { body, revision = '', settled, open, resend, health = '' } = fields
  if (body === undefined) return undefined
  const once = JSON.parse(body) as Pick<PushConfig, 'task' | 'id' | 'url' | 'longRunning' | 'setAt'>
  return {
    ...once,
    revision,
    settled: Number(settled),
    open: open === '1',
    ...(resend !== undefined && { resend: JSON.parse(resend) as EventRange[] }),
    health: JSON.parse(health) as PushConfig['health'],
  }
}

/** Returns the empty text for no events. */
const textOf = (events: readonly EventRange[] = []) => (events.length === 0 ? '' : JSON.stringify(events))

function pairsOf(flat: string[]): Fields {
  const fields: Fields = {}
  for (let i = 0; i + 1 < flat.length; i += 2) fields[flat[i] as string] = flat[i + 1] as string
  return fields
}

/** Hashes external names before they become part of keys. */
const printOf = (...texts: string[]) => hash('sha256', JSON.stringify(texts), 'base64url')
const printOfTask = ({ id, owner, createdAt }: TaskKey) => printOf(id, owner, createdAt)
