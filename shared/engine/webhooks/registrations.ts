import { randomUUID } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import type { JsonObject } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import type {
  Claim,
  ConfigKey,
  OpenPushConfig,
  PushConfig,
  Settlement,
  TaskKey,
  WebhookStore,
} from '../store/webhook-store.ts'
import { type GlobalProgress, globalId } from './global-progress.ts'
import { type Announcements, type Mark, SubscribedTasks } from './subscribed-tasks.ts'

/** A PushNotificationConfig as a caller sends it, read by its schema. */
export interface PushConfigInput {
  id: string
  url: string
  token?: string | undefined
  authentication?: JsonObject | undefined
}

export interface RegistrationsOptions {
  /** For `long_running` configs: outlives the process. */
  stored: WebhookStore
  /** For the others: outlives nothing but their task. */
  memory: WebhookStore
  /** How far the global webhook has come with each task, where several processes send for it. Default: each its own commits. */
  ofGlobal?: GlobalProgress | undefined
  /** @throws ParleyError InvalidParams for a receiver that events may not go to */
  check: (receiver: { url: string; token?: string | undefined }) => Promise<void>
  /** Other processes register configs in the same stores, and send. */
  shared: boolean
  /** Of the store; needed where it is shared. */
  countEvents?: (taskIds: string[]) => Promise<Map<string, number>>
  /** Where the stores are shared: how processes tell each other which tasks have configs. Default: found by the look every 2 s. */
  hints?: Announcements | undefined
  /** Somebody else has the events of tasks without a config: where the stores are shared, they are asked for each event. */
  hasGlobal?: boolean
  /** Default 20. */
  perTaskMax?: number
  /** Tasks with configs whose ids are kept. Default 100,000; with more, the store is asked for each event, or the look finds them. */
  knownTasksMax?: number
}

/** A registration that may be taken back while its request can still fail. */
export interface Registration {
  config: PushConfig
  undo: () => Promise<void>
}

type OnChange = (task: TaskKey, id: string, config: PushConfig | undefined) => void

/** Who wants the events of which task. A config is in one of two stores; which one is decided by its `long_running`. */
export class Registrations {
  readonly #options: RegistrationsOptions
  readonly #perTaskMax: number
  readonly #openTasks: SubscribedTasks
  #onChange: OnChange = () => {}

  constructor(options: RegistrationsOptions) {
    this.#options = options
    this.#perTaskMax = options.perTaskMax ?? 20
    const { shared, hasGlobal = false, hints, knownTasksMax: max = 100_000 } = options
    this.#openTasks = new SubscribedTasks({ max, everyTask: shared && hasGlobal, looked: shared, hints })
  }

  /** Other processes register configs, and send. */
  get shared(): boolean {
    return this.#options.shared
  }

  /** Told after each registration, replacement (with the new config) and removal (without one). */
  listen(onChange: OnChange): void {
    this.#onChange = onChange
  }

  /** @throws ParleyError InvalidParams for a receiver that events may not go to */
  check(wanted: PushConfigInput): Promise<void> {
    return this.#options.check(wanted)
  }

  /** From when it resolves on, what other processes tell of their configs is heard. */
  hearOthers(): Promise<void> {
    return this.#openTasks.listen()
  }

  /** False: the task has no config, or one that a look will find. True: ask. */
  mayHave(task: TaskKey): boolean {
    return this.#openTasks.has(task)
  }

  /** To be read before it is asked, and given to `noneLeft`. */
  mark(task: TaskKey): Mark {
    return this.#openTasks.mark(task)
  }

  /** Nobody waits for events of the task any more, unless somebody came since the mark. */
  noneLeft(task: TaskKey, mark: Mark): void {
    this.#openTasks.delete(task, mark)
  }

  /**
   * In force, and durable where it is `long_running`, once the promise resolves. The URL was checked before. It owes the
   * events after `settled`, of a task that `isNew` those to come; what an earlier config of the same id still owed is not sent.
   * @throws ParleyError InvalidParams when the task has too many, Unavailable when there is no room
   */
  async set(
    task: TaskKey,
    wanted: PushConfigInput,
    { isNew, ...at }: { longRunning: boolean; settled: number; open: boolean; isNew: boolean },
  ): Promise<Registration> {
    const key = { id: task.id, owner: task.owner, createdAt: task.createdAt }
    const config: PushConfig = {
      task: key,
      id: wanted.id,
      revision: randomUUID(),
      setAt: timestamp(),
      url: wanted.url,
      ...at,
      health: { attempts: 0, delivered: 0, dropped: {} },
    }
    if (wanted.token !== undefined) config.token = wanted.token
    if (wanted.authentication !== undefined) config.authentication = wanted.authentication
    const before = isNew ? undefined : await this.find(key, wanted.id)
    // A task to come has no config in the other store, and owes the global webhook nothing.
    await (isNew ? this.#put(config, this.#perTaskMax) : this.#save(config))
    return { config, undo: () => this.#undo(config, before) }
  }

  async find(task: TaskKey, id: string): Promise<PushConfig | undefined> {
    const { memory, stored, ofGlobal } = this.#options
    if (id === globalId) return ofGlobal?.find(task)
    return (await memory.findPushConfig(task, id)) ?? stored.findPushConfig(task, id)
  }

  /** The same, where it is known to be a stored one most likely: what the others need may be away. */
  async findStored(task: TaskKey, id: string): Promise<PushConfig | undefined> {
    return (await this.#options.stored.findPushConfig(task, id)) ?? this.find(task, id)
  }

  /** Who sends what the config owes: see `WebhookStore`. */
  async claim(key: ConfigKey, sender: string, forMs: number): Promise<Claim> {
    let claim: Claim = 'absent'
    for (const store of this.#storesOf(key)) {
      if (claim === 'absent') claim = await store.claimPushConfig(key, sender, forMs)
    }
    return claim
  }

  async renew(key: ConfigKey, sender: string, forMs: number): Promise<boolean> {
    let renewed = false
    for (const store of this.#storesOf(key)) renewed ||= await store.renewPushConfig(key, sender, forMs)
    return renewed
  }

  /** False: look again. */
  async release(key: ConfigKey, sender: string): Promise<boolean> {
    const over = this.#storesOf(key).map((store) => store.releasePushConfig(key, sender))
    return (await Promise.all(over)).every((done) => done)
  }

  /** The one set last first. */
  async list(task: TaskKey): Promise<PushConfig[]> {
    const { memory, stored } = this.#options
    const [inMemory, inStore] = await Promise.all([
      memory.listPushConfigs(task),
      stored.listPushConfigs(task),
    ])
    if (inMemory.length === 0) return inStore
    // One that moves from one to the other is in both for a moment.
    const ids = new Set(inMemory.map(({ id }) => id))
    const all = [...inMemory, ...inStore.filter(({ id }) => !ids.has(id))]
    return all.sort((a, b) => (a.setAt < b.setAt ? 1 : -1))
  }

  /** The config that was removed; what it still owed is not sent. */
  async remove(task: TaskKey, id: string): Promise<PushConfig | undefined> {
    const stores = this.#storesOf({ task, id }).reverse()
    const removed: (PushConfig | undefined)[] = []
    for (const store of stores) removed.push(await store.removePushConfig(task, id))
    const found = removed.find((config) => config !== undefined)
    if (found !== undefined) this.#onChange(task, id, undefined)
    return found
  }

  /** It was not replaced or removed meanwhile, here or by another process. @throws ParleyError Unavailable */
  async stands(config: PushConfig): Promise<boolean> {
    const there = await this.#storeOf(config).findPushConfig(config.task, config.id)
    return there?.revision === config.revision
  }

  /** False when the config was replaced or removed meanwhile, or another process sends what it owes. */
  settle(config: PushConfig, settlement: Settlement, sender: string): Promise<boolean> {
    return this.#storeOf(config).settlePushConfig(config, settlement, this.shared ? sender : undefined)
  }

  /** What the global webhook owes of the task, from the event after the number on. Undefined: it is not shared. */
  async ofGlobal(task: TaskKey, settled: number): Promise<PushConfig | undefined> {
    return this.#options.ofGlobal?.open(task, settled)
  }

  get hasSharedGlobal(): boolean {
    return this.#options.ofGlobal !== undefined
  }

  /** Reads which tasks have stored configs; to be called before tasks run. Returns how many there are. */
  async loadOpen(): Promise<number> {
    let count = 0
    for await (const { task } of this.storedOpen()) {
      this.#openTasks.add(task)
      count += 1
    }
    return count
  }

  /** Every kept config that may owe something, a page at a time; of those that several processes send, what nobody sends. */
  async *storedOpen(): AsyncGenerator<OpenPushConfig> {
    const { stored, memory, ofGlobal, shared } = this.#options
    yield* this.#openOf(stored)
    if (!shared) return
    yield* this.#openOf(memory)
    if (ofGlobal !== undefined) yield* this.#openOf(ofGlobal.store)
  }

  async *#openOf(store: WebhookStore): AsyncGenerator<OpenPushConfig> {
    const { shared, countEvents } = this.#options
    let cursor: number | undefined
    do {
      const at = cursor === undefined ? {} : { cursor }
      const page = await store.listOpenPushConfigs({ limit: 500, ...at, unclaimed: shared })
      if (!shared) yield* page.items
      else if (page.items.length > 0) {
        for (const { task } of page.items) this.#openTasks.heardOf(task)
        const counts = await countEvents?.(page.items.map(({ task }) => task.id))
        yield* page.items.filter(({ task, settled }) => counts?.get(task.id) !== settled)
      }
      cursor = page.nextCursor
    } while (cursor !== undefined)
  }

  #storeOf({ id, longRunning }: PushConfig): WebhookStore {
    const { stored, memory, ofGlobal } = this.#options
    if (id === globalId && ofGlobal !== undefined) return ofGlobal.store
    return longRunning ? stored : memory
  }

  #storesOf({ id }: ConfigKey): WebhookStore[] {
    const { stored, memory, ofGlobal } = this.#options
    return id === globalId ? (ofGlobal === undefined ? [] : [ofGlobal.store]) : [stored, memory]
  }

  async #save(config: PushConfig): Promise<void> {
    const { memory, stored } = this.#options
    const { task, id } = config
    const other = config.longRunning ? memory : stored
    const elsewhere = (await other.listPushConfigs(task)).filter((there) => there.id !== id).length
    await this.#put(config, this.#perTaskMax - elsewhere)
    await other.removePushConfig(task, id)
    // From here on the task is not the global webhook's.
    await this.#options.ofGlobal?.store.removePushConfig(task, globalId)
    this.#onChange(task, id, config)
  }

  async #put(config: PushConfig, max: number): Promise<void> {
    const { task } = config
    if (config.open) this.#openTasks.add(task)
    if (!(await this.#storeOf(config).savePushConfig(config, max))) {
      throw new ParleyError('InvalidParams', {
        message: `A task may have at most ${this.#perTaskMax} push notification configs`,
        data: { taskId: task.id },
      })
    }
    // Once more: who asked before it was there has found nobody.
    if (config.open) this.#openTasks.add(task)
  }

  async #undo(config: PushConfig, before: PushConfig | undefined): Promise<void> {
    const { task, id, revision } = config
    const removed = await this.#storeOf(config).removePushConfig(task, id, revision)
    if (removed === undefined) return
    if (before !== undefined) await this.#save(before)
    else this.#onChange(task, id, undefined)
  }
}
