import { randomUUID } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import type { PushConfigInput } from '@parley/wire/model/call'
import { timestamp } from '@parley/wire/model/timestamp'
import type {
  Claim,
  ConfigKey,
  EventRange,
  OpenPushConfig,
  PushConfig,
  Settlement,
  TaskKey,
  WebhookStore,
} from '../store/webhook-store.ts'
import { type GlobalProgress, globalId } from './global-progress.ts'
import { type Announcements, type Mark, SubscribedTasks } from './subscribed-tasks.ts'

export interface RegistrationsOptions {
  /** The store for `long_running` configs, which survive the process. */
  stored: WebhookStore
  /** The store for other configs, which live as long as their task. */
  memory: WebhookStore
  /**
   * The global webhook's shared progress, for agents with several processes. By default, each process
   * delivers its own commits.
   */
  globalProgress?: GlobalProgress | undefined
  /** Checks a receiver. @throws ParleyError InvalidParams if the receiver is not allowed */
  check: (receiver: Pick<PushConfigInput, 'url' | 'token' | 'credentials'>) => Promise<void>
  /** Whether other processes use the same stores and deliver events. */
  shared: boolean
  /** Counts the tasks' events in the store. Required if the store is shared. */
  countEvents?: (taskIds: string[]) => Promise<Map<string, number>>
  /** Announces tasks with configs to other processes. By default, the scan finds them every 2 s. */
  announcements?: Announcements | undefined
  /**
   * Whether there is a global webhook for tasks without a config. If so, shared stores are queried for each
   * event.
   */
  hasGlobal?: boolean
  /** Maximum number of configs per task. Default 20. */
  perTaskMax?: number
  /**
   * Maximum number of tracked tasks with configs. Beyond it, the store is queried for each event or the scan
   * finds the configs. Default 100,000.
   */
  knownTasksMax?: number
}

/** A registration that can be undone while its request may still fail. */
export interface Registration {
  config: PushConfig
  undo: () => Promise<void>
}

type OnChange = (task: TaskKey, id: string, config: PushConfig | undefined) => void

/** The push configs of all tasks. Whether a config is `long_running` determines which of the two stores holds it. */
export class Registrations {
  readonly #options: RegistrationsOptions
  readonly #perTaskMax: number
  readonly #subscribedTasks: SubscribedTasks
  #onChange: OnChange = () => {}
  #onResend: (config: PushConfig) => void = () => {}

  constructor(options: RegistrationsOptions) {
    this.#options = options
    this.#perTaskMax = options.perTaskMax ?? 20
    const { shared, hasGlobal = false, announcements, knownTasksMax: max = 100_000 } = options
    this.#subscribedTasks = new SubscribedTasks({
      max,
      matchAll: shared && hasGlobal,
      scanned: shared,
      announcements,
    })
  }

  /** Whether other processes register configs and deliver events. */
  get shared(): boolean {
    return this.#options.shared
  }

  /**
   * The listener is called with the new config after a registration or replacement, and without one after a
   * removal.
   */
  listen(onChange: OnChange): void {
    this.#onChange = onChange
  }

  /** The listener is called with a config of which settled events are to be sent again. */
  listenToResends(onResend: (config: PushConfig) => void): void {
    this.#onResend = onResend
  }

  /** Checks the receiver. @throws ParleyError InvalidParams if it is not allowed */
  check(input: PushConfigInput): Promise<void> {
    return this.#options.check(input)
  }

  /** Resolves when announcements from other processes are being received. */
  listenToAnnouncements(): Promise<void> {
    return this.#subscribedTasks.listen()
  }

  /** Returns false if the task has no config, or only one that the scan will find. */
  mayHaveConfig(task: TaskKey): boolean {
    return this.#subscribedTasks.has(task)
  }

  /** Returns the task's mark. Read it before listing the task's configs, and pass it to `forgetTask`. */
  mark(task: TaskKey): Mark {
    return this.#subscribedTasks.mark(task)
  }

  /** Stops tracking the task, unless a config was registered after the mark was read. */
  forgetTask(task: TaskKey, mark: Mark): void {
    this.#subscribedTasks.delete(task, mark)
  }

  /**
   * Registers a config whose URL has been checked. Resolves when the config is effective, and durable if it
   * is `long_running`. The config receives the events after `settled`, and a new id if the input has none. If an earlier
   * config has the same id, its undelivered events are discarded. `isNew` means that the task does not exist yet.
   * @throws ParleyError InvalidParams when the task has too many configs, Unavailable when there is no
   * capacity
   */
  async set(
    task: TaskKey,
    input: PushConfigInput,
    { isNew, ...at }: { longRunning: boolean; settled: number; open: boolean; isNew: boolean },
  ): Promise<Registration> {
    const key = { id: task.id, owner: task.owner, createdAt: task.createdAt }
    const config: PushConfig = {
      task: key,
      id: input.id ?? randomUUID(),
      revision: randomUUID(),
      setAt: timestamp(),
      url: input.url,
      ...at,
      health: { attempts: 0, delivered: 0, dropped: {} },
    }
    const { name, token, authentication, credentials, dialect } = input
    if (name !== undefined) config.name = name
    if (token !== undefined) config.token = token
    if (authentication !== undefined) config.authentication = authentication
    if (credentials !== undefined) config.credentials = credentials
    if (dialect !== undefined) config.dialect = dialect
    const before = isNew || input.id === undefined ? undefined : await this.find(key, input.id)
    // A new task has no config in the other store, and no progress for the global webhook.
    await (isNew ? this.#put(config, this.#perTaskMax) : this.#save(config))
    return { config, undo: () => this.#undo(config, before) }
  }

  async find(task: TaskKey, id: string): Promise<PushConfig | undefined> {
    const { memory, stored, globalProgress } = this.#options
    if (id === globalId) return globalProgress?.find(task)
    return (await memory.findPushConfig(task, id)) ?? stored.findPushConfig(task, id)
  }

  /**
   * Like `find`, but reads the durable store first, so that a stored config is found even if the other store
   * is unavailable.
   */
  async findStored(task: TaskKey, id: string): Promise<PushConfig | undefined> {
    return (await this.#options.stored.findPushConfig(task, id)) ?? this.find(task, id)
  }

  /** Claims the delivery of the config's events. See `WebhookStore`. */
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

  /** Releases the claim. Returns false if there may be new events to deliver. */
  async release(key: ConfigKey, sender: string): Promise<boolean> {
    const released = this.#storesOf(key).map((store) => store.releasePushConfig(key, sender))
    return (await Promise.all(released)).every((done) => done)
  }

  /** Returns the task's configs, newest first. */
  async list(task: TaskKey): Promise<PushConfig[]> {
    const { memory, stored } = this.#options
    const [inMemory, inStore] = await Promise.all([
      memory.listPushConfigs(task),
      stored.listPushConfigs(task),
    ])
    if (inMemory.length === 0) return inStore
    // A config that moves between the stores is briefly in both.
    const ids = new Set(inMemory.map(({ id }) => id))
    const all = [...inMemory, ...inStore.filter(({ id }) => !ids.has(id))]
    return all.sort((a, b) => (a.setAt < b.setAt ? 1 : -1))
  }

  /** Removes and returns the config. Its undelivered events are discarded. */
  async remove(task: TaskKey, id: string): Promise<PushConfig | undefined> {
    const stores = this.#storesOf({ task, id }).reverse()
    const removed: (PushConfig | undefined)[] = []
    for (const store of stores) removed.push(await store.removePushConfig(task, id))
    const found = removed.find((config) => config !== undefined)
    if (found !== undefined) this.#onChange(task, id, undefined)
    return found
  }

  /**
   * Returns whether the config has been neither replaced nor removed by any process.
   * @throws ParleyError Unavailable
   */
  async isCurrent(config: PushConfig): Promise<boolean> {
    const current = await this.#storeOf(config).findPushConfig(config.task, config.id)
    return current?.revision === config.revision
  }

  /**
   * Stores a settlement. Returns false if the config was replaced or removed, or if another process holds its
   * lease.
   */
  settle(config: PushConfig, settlement: Settlement, sender: string): Promise<boolean> {
    return this.#storeOf(config).settlePushConfig(config, settlement, this.shared ? sender : undefined)
  }

  /**
   * Schedules settled events to be sent again, in order. Returns false if the config was replaced or removed, or if events
   * of it are already scheduled.
   */
  async resend(config: PushConfig, events: readonly EventRange[]): Promise<boolean> {
    if (!(await this.#storeOf(config).resendPushConfig(config, events))) return false
    this.#onResend(config)
    return true
  }

  /** Lists the configs of all tasks in one of the two stores, those registered last first. */
  listAll(which: 'stored' | 'memory', query: { limit: number; cursor?: string | undefined }) {
    return this.#options[which].listAllPushConfigs(query)
  }

  /**
   * Returns the global webhook's shared progress for the task, creating it after event `settled` if
   * necessary. Returns undefined if the progress is not shared or there is no capacity.
   */
  async globalProgress(task: TaskKey, settled: number): Promise<PushConfig | undefined> {
    return this.#options.globalProgress?.open(task, settled)
  }

  get hasSharedGlobal(): boolean {
    return this.#options.globalProgress !== undefined
  }

  /** Loads which tasks have stored configs, and returns the number of configs. Call it before tasks run. */
  async loadOpen(): Promise<number> {
    let count = 0
    for await (const { task } of this.listOpen()) {
      this.#subscribedTasks.add(task)
      count += 1
    }
    return count
  }

  /** Lists all open configs page by page. If the stores are shared, lists only unclaimed configs. */
  async *listOpen(): AsyncGenerator<OpenPushConfig> {
    const { stored, memory, globalProgress, shared } = this.#options
    yield* this.#openOf(stored)
    if (!shared) return
    yield* this.#openOf(memory)
    if (globalProgress !== undefined) yield* this.#openOf(globalProgress.store)
  }

  async *#openOf(store: WebhookStore): AsyncGenerator<OpenPushConfig> {
    const { shared, countEvents } = this.#options
    let cursor: number | undefined
    do {
      const at = cursor === undefined ? {} : { cursor }
      const page = await store.listOpenPushConfigs({ limit: 500, ...at, unclaimed: shared })
      if (!shared) yield* page.items
      else if (page.items.length > 0) {
        for (const { task } of page.items) this.#subscribedTasks.observe(task)
        const counts = await countEvents?.(page.items.map(({ task }) => task.id))
        yield* page.items.filter(
          ({ task, settled, resends }) => resends === true || counts?.get(task.id) !== settled,
        )
      }
      cursor = page.nextCursor
    } while (cursor !== undefined)
  }

  #storeOf({ id, longRunning }: PushConfig): WebhookStore {
    const { stored, memory, globalProgress } = this.#options
    if (id === globalId && globalProgress !== undefined) return globalProgress.store
    return longRunning ? stored : memory
  }

  #storesOf({ id }: ConfigKey): WebhookStore[] {
    const { stored, memory, globalProgress } = this.#options
    return id === globalId ? (globalProgress === undefined ? [] : [globalProgress.store]) : [stored, memory]
  }

  async #save(config: PushConfig): Promise<void> {
    const { memory, stored } = this.#options
    const { task, id } = config
    const other = config.longRunning ? memory : stored
    const elsewhere = (await other.listPushConfigs(task)).filter((current) => current.id !== id).length
    await this.#put(config, this.#perTaskMax - elsewhere)
    await other.removePushConfig(task, id)
    // The task's own config replaces the global webhook.
    await this.#options.globalProgress?.store.removePushConfig(task, globalId)
    this.#onChange(task, id, config)
  }

  async #put(config: PushConfig, max: number): Promise<void> {
    const { task } = config
    if (config.open) this.#subscribedTasks.add(task)
    if (!(await this.#storeOf(config).savePushConfig(config, max))) {
      throw new ParleyError('InvalidParams', {
        message: `A task may have at most ${this.#perTaskMax} push notification configs`,
        data: { taskId: task.id },
      })
    }
    // The task is added again, because a concurrent lookup may have removed the entry before the config was
    // stored.
    if (config.open) this.#subscribedTasks.add(task)
  }

  async #undo(config: PushConfig, before: PushConfig | undefined): Promise<void> {
    const { task, id, revision } = config
    const removed = await this.#storeOf(config).removePushConfig(task, id, revision)
    if (removed === undefined) return
    if (before !== undefined) await this.#save(before)
    else this.#onChange(task, id, undefined)
  }
}
