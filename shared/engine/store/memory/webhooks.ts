import { ParleyError } from '@parley/wire/errors'
import type {
  Claim,
  ConfigKey,
  EventRange,
  ListedPushConfig,
  PushConfig,
  Settlement,
  TaskKey,
  WebhookStore,
} from '../webhook-store.ts'

export interface MemoryWebhooksOptions {
  /** Maximum number of configs. Default 100,000. An owner may have half of them with undelivered events. */
  max?: number
}

/** Push configs that are lost when the process ends. When full, it removes the config that was completed first. */
export class MemoryWebhooks implements WebhookStore {
  readonly #max: number
  /** The configs of each task, oldest first. */
  readonly #tasks = new Map<string, Map<string, PushConfig>>()
  /** Completed configs in order of completion. */
  readonly #closed = new Set<PushConfig>()
  /** Number of configs with undelivered events for each owner. */
  readonly #owing = new Map<string, number>()
  /** All configs in order of registration, with its number. */
  readonly #registered = new Map<string, ConfigKey & { number: number }>()
  #lastNumber = 0
  #size = 0

  constructor(options: MemoryWebhooksOptions = {}) {
    this.#max = options.max ?? 100_000
  }

  /** Number of configs. */
  get size(): number {
    return this.#size
  }

  async savePushConfig(config: PushConfig, perTaskMax: number): Promise<boolean> {
    const key = keyOf(config.task)
    const same = this.#find(config)
    if (same === undefined && (this.#tasks.get(key)?.size ?? 0) >= perTaskMax) return false
    if (same === undefined) this.#makeRoom(config)
    else this.#remove(same)
    const ofTask = this.#tasks.get(key) ?? new Map<string, PushConfig>()
    this.#tasks.set(key, ofTask)
    this.#put(ofTask, { ...config })
    this.#lastNumber += 1
    this.#registered.set(configKey(config), { task: config.task, id: config.id, number: this.#lastNumber })
    this.#size += 1
    return true
  }

  async findPushConfig(task: TaskKey, id: string): Promise<PushConfig | undefined> {
    return this.#find({ task, id })
  }

  async listPushConfigs(task: TaskKey): Promise<PushConfig[]> {
    return [...(this.#tasks.get(keyOf(task))?.values() ?? [])].reverse()
  }

  async removePushConfig(task: TaskKey, id: string, revision?: string): Promise<PushConfig | undefined> {
    const found = this.#find({ task, id })
    if (revision !== undefined && found?.revision !== revision) return undefined
    this.#remove(found)
    return found
  }

  async settlePushConfig(
    { task, id, revision }: Pick<PushConfig, 'task' | 'id' | 'revision'>,
    { settled, open, health, resend }: Settlement,
  ): Promise<boolean> {
    const found = this.#find({ task, id })
    if (found === undefined || found.revision !== revision) return false
    if (settled < found.settled || (settled === found.settled && !found.open)) return false
    if (resend !== undefined && JSON.stringify(resend.before) !== JSON.stringify(found.resend)) return false
    const { resend: scheduled = [], ...rest } = found
    const left = resend?.after ?? scheduled
    const staysOpen = open || resend !== undefined || left.length > 0
    this.#replace(found, {
      ...rest,
      settled,
      open: staysOpen,
      health,
      ...(left.length > 0 && { resend: left }),
    })
    return true
  }

  async resendPushConfig(
    { task, id, revision }: Pick<PushConfig, 'task' | 'id' | 'revision'>,
    events: readonly EventRange[],
  ): Promise<boolean> {
    const found = this.#find({ task, id })
    if (found?.revision !== revision || found.resend !== undefined) return false
    this.#replace(found, { ...found, resend: [...events], open: true })
    return true
  }

  async listAllPushConfigs(query: {
    limit: number
    cursor?: string | undefined
  }): Promise<ListedPushConfig[]> {
    const { limit, cursor = Number.POSITIVE_INFINITY } = query
    const found: ListedPushConfig[] = []
    for (const key of [...this.#registered.values()].reverse()) {
      if (found.length >= limit) break
      const config = key.number < Number(cursor) ? this.#find(key) : undefined
      if (config !== undefined) found.push({ config, cursor: String(key.number) })
    }
    return found
  }

  async claimPushConfig({ task, id }: ConfigKey): Promise<Claim> {
    return this.#find({ task, id }) === undefined ? 'absent' : 'ours'
  }

  async renewPushConfig(): Promise<true> {
    return true
  }

  async releasePushConfig(): Promise<true> {
    return true
  }

  /** Returns an empty list: no config survives a restart, so there is nothing to resume. */
  async listOpenPushConfigs(): Promise<{ items: [] }> {
    return { items: [] }
  }

  #find({ task, id }: Pick<PushConfig, 'task' | 'id'>): PushConfig | undefined {
    return this.#tasks.get(keyOf(task))?.get(id)
  }

  #replace(found: PushConfig, config: PushConfig): void {
    this.#uncount(found)
    this.#put(this.#tasks.get(keyOf(found.task)) ?? new Map<string, PushConfig>(), config)
  }

  #put(ofTask: Map<string, PushConfig>, config: PushConfig): void {
    ofTask.set(config.id, config)
    if (!config.open) this.#closed.add(config)
    else this.#owe(config, 1)
  }

  #remove(config: PushConfig | undefined): void {
    if (config === undefined) return
    const key = keyOf(config.task)
    const ofTask = this.#tasks.get(key)
    if (ofTask?.delete(config.id) === true) this.#size -= 1
    this.#registered.delete(configKey(config))
    if (ofTask?.size === 0) this.#tasks.delete(key)
    this.#uncount(config)
  }

  #uncount(config: PushConfig): void {
    if (config.open) this.#owe(config, -1)
    else this.#closed.delete(config)
  }

  #owe({ task: { owner } }: PushConfig, by: 1 | -1): void {
    const owing = (this.#owing.get(owner) ?? 0) + by
    if (owing > 0) this.#owing.set(owner, owing)
    else this.#owing.delete(owner)
  }

  /** @throws ParleyError Unavailable */
  #makeRoom({ task: { owner } }: PushConfig): void {
    if ((this.#owing.get(owner) ?? 0) >= this.#max / 2) throw full()
    if (this.#size < this.#max) return
    const [oldest] = this.#closed
    if (oldest === undefined) throw full()
    this.#remove(oldest)
  }
}

const keyOf = ({ id, owner, createdAt }: TaskKey) => `${id} ${createdAt} ${owner}`
const configKey = ({ task, id }: ConfigKey) => `${keyOf(task)} ${id}`

function full(): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'Too many webhooks are registered; use long_running true, which stores them on the disk',
    data: { reason: 'webhooks_full' },
    headers: { 'retry-after': '60' },
  })
}
