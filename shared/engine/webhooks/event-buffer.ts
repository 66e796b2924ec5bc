import type { Log } from '@parley/kit/process/log'
import { isTerminal } from '@parley/wire/model/task'
import { millisOf } from '@parley/wire/model/timestamp'
import type { TaskRecord } from '../store/store.ts'
import type { PushConfig, TaskKey } from '../store/webhook-store.ts'
import type { DeliveryLeases } from './delivery-leases.ts'
import type { DeliveryQueue, DeliveryQueues } from './delivery-queue.ts'
import { type PreparedEvent, prepareEvents } from './prepare-events.ts'
import type { Registrations } from './registrations.ts'

/** The operator's webhook, for tasks without a config of their own. */
export interface GlobalWebhook {
  url: string
  token?: string | undefined
}

/** Where a lane leads now, and how far it has come. */
interface Target {
  url: string
  token: string | undefined
  revision: string
  settled: number
  /** Absent: the global webhook. */
  config: PushConfig | undefined
  /** When the config was asked for, by the clock of `performance`. */
  readAt: number
}

export type NextEvent = Target & { event: PreparedEvent }

interface Parts {
  registrations: Registrations
  loadTask: (id: string) => Promise<TaskRecord | undefined>
  globalWebhook?: GlobalWebhook | undefined
  lanes: DeliveryQueues
  claims: Pick<DeliveryLeases, 'hold' | 'sender'>
  log: Pick<Log, 'debug'>
  /** Held by all lanes before only small events are added. */
  bytesMax: number
}

/** An event of so many bytes is held beyond the bound: the dispatcher bounds how many there are. */
const smallBytes = 16 * 1024

/** Between the look at a config and the first attempt, where nothing waited. */
const freshMs = 50

/** A config is registered before its task is created; one whose task never came is left for so long. */
const orphanAfterMs = 10 * 60 * 1000

/** Finds what a lane sends next: the config as it is now, and the event as bytes. Keeps count of the bytes. */
export class EventBuffer {
  readonly #parts: Parts
  #bytes = 0
  readonly #bytesOf = new Map<string, number>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** DeliveryQueues that wait are to hold no bytes from here on. */
  get isHalfFull(): boolean {
    return this.#bytes > this.#parts.bytesMax / 2
  }

  /** A further large event of the owner may be held: an owner has at most as many bytes as are still free. */
  hasRoom(owner: string): boolean {
    return (this.#bytesOf.get(owner) ?? 0) < this.#parts.bytesMax - this.#bytes
  }

  /** Undefined: nothing is to be sent, or no longer there. @param draining stored configs are left alone */
  async read(lane: DeliveryQueue, draining: boolean): Promise<NextEvent | undefined> {
    lane.isLarge = false
    if (!(await this.#parts.claims.hold(lane))) return undefined
    const target = await this.#target(lane, draining)
    if (target === undefined) return undefined
    if (target.url !== lane.url && this.#moves(lane, target.url)) {
      lane.again = true
      return undefined
    }
    // Another process may have sent some of them, or sent others in between.
    const fits = lane.batch[0]?.sequence === target.settled + 1 && lane.revision === target.revision
    if (!fits) await this.#fill(lane, target)
    const [event] = lane.batch
    return event === undefined ? undefined : { ...target, event }
  }

  /**
   * To be asked right before each attempt: false where the config was removed or replaced since, by any process or with its
   * task. Where the storage cannot tell, what was read holds. Never rejects.
   */
  async stands({ config, readAt }: NextEvent, isFirst: boolean): Promise<boolean> {
    if (config === undefined || (isFirst && performance.now() - readAt < freshMs)) return true
    const { registrations, log } = this.#parts
    try {
      return await registrations.stands(config)
    } catch (error) {
      log.debug({ err: error, task_id: config.task.id }, 'a webhook is sent as it was last known')
      return true
    }
  }

  /** Forgets bytes; they are made again when their turn comes. */
  drop(lane: DeliveryQueue): void {
    for (const { body } of lane.batch) this.#count(lane, -body.byteLength)
    lane.batch = []
  }

  /** The event is settled. */
  shift(lane: DeliveryQueue, event: PreparedEvent): void {
    if (lane.batch[0] !== event) return
    lane.batch.shift()
    this.#count(lane, -event.body.byteLength)
  }

  /** Replaced while it waited: it takes its turn at the host where it goes now. */
  #moves(lane: DeliveryQueue, url: string): boolean {
    const { host } = lane
    this.#parts.lanes.lead(lane, url)
    return lane.host !== host
  }

  async #target(lane: DeliveryQueue, draining: boolean): Promise<Target | undefined> {
    const { registrations, globalWebhook } = this.#parts
    const readAt = performance.now()
    if (lane.configId === undefined) {
      if (globalWebhook === undefined) return undefined
      const { url, token } = globalWebhook
      return { url, token, revision: '', settled: lane.settled, config: undefined, readAt }
    }
    const { task, configId, stored } = lane
    const find = stored ? registrations.findStored(task, configId) : registrations.find(task, configId)
    const config = await find
    if (config === undefined || !config.open || (draining && config.longRunning)) return undefined
    const { url, token, revision, settled } = config
    return { url, token, revision, settled, config, readAt }
  }

  async #fill(lane: DeliveryQueue, { revision, settled, config }: Target): Promise<void> {
    const { registrations, lanes, claims } = this.#parts
    const record = await this.#recordOf(lane)
    this.drop(lane)
    lane.revision = revision
    if (record === undefined || !isOf(lane.task, record)) {
      // One that outlives us may be waiting for its task; those in memory are woken by its commits.
      const isOurs = config !== undefined && !config.longRunning && !registrations.shared
      if (config !== undefined && (isOurs || isOld(lane.task)))
        await registrations.remove(lane.task, config.id)
      return
    }
    // What came after a config of the task's own was set is not the global webhook's.
    const last = config === undefined ? lane.known : record.events.length
    const prepared = prepareEvents(record, settled).filter(({ sequence }) => sequence <= last)
    this.#hold(lane, prepared)
    lanes.move(lane, { settled, known: last })
    if (prepared.length > 0 || config === undefined || !isTerminal(record.status.state)) return
    registrations.noneLeft(lane.task, registrations.mark(lane.task))
    await registrations.settle(config, { settled, open: false, health: config.health }, claims.sender)
  }

  /** Between a commit and its events nobody clears the task, unless other processes write to the store as well. */
  async #recordOf({ task, record, known }: DeliveryQueue): Promise<TaskRecord | undefined> {
    const { registrations, loadTask } = this.#parts
    const isNewest = record !== undefined && record.events.length >= known
    return isNewest && !registrations.shared ? record : loadTask(task.id)
  }

  /** Receivers that take nothing may hold the bytes of large events; small ones of others go past them. */
  #hold(lane: DeliveryQueue, prepared: PreparedEvent[]): void {
    const [first] = prepared
    const isFull = !this.hasRoom(lane.task.owner)
    lane.isLarge = isFull && first !== undefined && first.body.byteLength > smallBytes
    if (lane.isLarge) return
    lane.batch = isFull ? prepared.slice(0, 1) : prepared
    for (const { body } of lane.batch) this.#count(lane, body.byteLength)
  }

  #count({ task }: DeliveryQueue, by: number): void {
    this.#bytes += by
    const its = (this.#bytesOf.get(task.owner) ?? 0) + by
    if (its > 0) this.#bytesOf.set(task.owner, its)
    else this.#bytesOf.delete(task.owner)
  }
}

const isOf = (task: TaskKey, record: TaskRecord) =>
  record.owner === task.owner && record.createdAt === task.createdAt

const isOld = ({ createdAt }: TaskKey) => millisOf(createdAt) < Date.now() - orphanAfterMs
