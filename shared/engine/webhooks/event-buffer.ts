import type { Log } from '@parley/kit/process/log'
import { isTerminal } from '@parley/wire/model/task'
import { millisOf } from '@parley/wire/model/timestamp'
import type { TaskRecord } from '../store/store.ts'
import type { EventRange, PushConfig, TaskKey } from '../store/webhook-store.ts'
import type { DeliveryLeases } from './delivery-leases.ts'
import type { DeliveryQueue, DeliveryQueues } from './delivery-queue.ts'
import { type PreparedEvent, prepareEvents } from './prepare-events.ts'
import type { Registrations } from './registrations.ts'

/** The operator's webhook, which receives the events of tasks without a config. */
export interface GlobalWebhook {
  url: string
  token?: string | undefined
}

/** A queue's current receiver and its progress. */
interface Target extends GlobalWebhook {
  credentials?: PushConfig['credentials']
  /** The name of the dialect of the bodies; undefined for the default one. */
  dialect?: string | undefined
  revision: string
  settled: number
  /** The events to be sent again. The first of them is the next event. */
  resend?: EventRange[] | undefined
  /** Undefined for the global webhook. */
  config: PushConfig | undefined
  /** When the config was read, measured by `performance.now()`. */
  readAt: number
}

export type NextEvent = Target & { event: PreparedEvent } & Pick<PreparedEvent, 'trace'>

interface Parts {
  registrations: Registrations
  loadTask: (id: string) => Promise<TaskRecord | undefined>
  globalWebhook?: GlobalWebhook | undefined
  queues: DeliveryQueues
  leases: Pick<DeliveryLeases, 'acquire' | 'sender'>
  log: Pick<Log, 'debug'>
  /** The number of bytes in all queues beyond which only small events are loaded. */
  bytesMax: number
}

/** Events up to this size are loaded even beyond the limit. The dispatcher limits their number. */
const smallBytes = 16 * 1024

/** The age at which a config is read again before the first attempt. */
const freshMs = 50

/** A config is registered before its task is created. A config without a task is removed after this time. */
const orphanAfterMs = 10 * 60 * 1000

/**
 * Loads the next events of queues together with the current config and the serialized body. Tracks the bytes
 * that these events hold.
 */
export class EventBuffer {
  readonly #parts: Parts
  #bytes = 0
  readonly #bytesOf = new Map<string, number>()

  constructor(parts: Parts) {
    this.#parts = parts
  }

  /** Whether waiting queues should release their bytes. */
  get isHalfFull(): boolean {
    return this.#bytes > this.#parts.bytesMax / 2
  }

  /** Whether a large event of the owner may be loaded. An owner may hold as many bytes as are still free. */
  hasCapacity(owner: string): boolean {
    return (this.#bytesOf.get(owner) ?? 0) < this.#parts.bytesMax - this.#bytes
  }

  /** Returns undefined if there is nothing to deliver. @param draining skips stored configs */
  async next(queue: DeliveryQueue, draining: boolean): Promise<NextEvent | undefined> {
    queue.isLarge = false
    if (!(await this.#parts.leases.acquire(queue))) return undefined
    const target = await this.#target(queue, draining)
    if (target === undefined) return undefined
    if (target.url !== queue.url && this.#changesHost(queue, target.url)) {
      queue.changed = true
      return undefined
    }
    // Another process may have delivered some of these events.
    const fits = queue.batch[0]?.sequence === firstOf(target) && queue.revision === target.revision
    if (!fits) await this.#fill(queue, target)
    const [event] = queue.batch
    return event === undefined ? undefined : { ...target, event, trace: event.trace }
  }

  /**
   * Returns false if the config was removed or replaced since it was read, even by another process or
   * together with its task. Call it before each attempt. Returns true if the store is unavailable. Never
   * rejects.
   */
  async isCurrent({ config, readAt }: NextEvent, isFirst: boolean): Promise<boolean> {
    if (config === undefined || (isFirst && performance.now() - readAt < freshMs)) return true
    const { registrations, log } = this.#parts
    try {
      return await registrations.isCurrent(config)
    } catch (error) {
      log.debug({ err: error, task_id: config.task.id }, 'delivering a webhook without checking its config')
      return true
    }
  }

  /** Releases the event bodies. They are serialized again when needed. */
  drop(queue: DeliveryQueue): void {
    for (const { body } of queue.batch) this.#count(queue, -body.byteLength)
    queue.batch = []
  }

  /** Removes a settled event. */
  shift(queue: DeliveryQueue, event: PreparedEvent): void {
    if (queue.batch[0] !== event) return
    queue.batch.shift()
    this.#count(queue, -event.body.byteLength)
  }

  /** Updates the receiver. Returns true if its host changed, so that the queue must wait for a slot there. */
  #changesHost(queue: DeliveryQueue, url: string): boolean {
    const { host } = queue
    this.#parts.queues.redirect(queue, url)
    return queue.host !== host
  }

  async #target(queue: DeliveryQueue, draining: boolean): Promise<Target | undefined> {
    const { registrations, globalWebhook } = this.#parts
    const readAt = performance.now()
    if (queue.configId === undefined) {
      if (globalWebhook === undefined) return undefined
      const { url, token } = globalWebhook
      return { url, token, revision: '', settled: queue.settled, config: undefined, readAt }
    }
    const { task, configId, stored } = queue
    const find = stored ? registrations.findStored(task, configId) : registrations.find(task, configId)
    const config = await find
    if (config === undefined || !config.open || (draining && config.longRunning)) return undefined
    const { url, token, credentials, dialect, revision, settled, resend } = config
    return { url, token, credentials, dialect, revision, settled, resend, config, readAt }
  }

  async #fill(queue: DeliveryQueue, target: Target): Promise<void> {
    const { registrations, queues, leases } = this.#parts
    const { revision, settled, config, dialect, resend } = target
    const record = await this.#recordOf(queue)
    this.drop(queue)
    queue.revision = revision
    if (record === undefined || !isOf(queue.task, record)) {
      // A stored config may still be waiting for its task. A config in memory is woken by the task's commits.
      const isInMemory = config !== undefined && !config.longRunning && !registrations.shared
      if (config !== undefined && (isInMemory || isOld(queue.task)))
        await registrations.remove(queue.task, config.id)
      return
    }
    // Events that follow a config's registration do not go to the global webhook.
    const last = config === undefined ? queue.newest : record.events.length
    const lastSent = resend?.[0]?.[1] ?? last
    const prepared = prepareEvents(record, firstOf(target) - 1, dialect).filter(
      ({ sequence }) => sequence <= lastSent,
    )
    this.#store(queue, prepared)
    queues.advance(queue, { settled, newest: last })
    if (prepared.length > 0 || config === undefined || !isTerminal(record.status.state)) return
    registrations.forgetTask(queue.task, registrations.mark(queue.task))
    await registrations.settle(config, { settled, open: false, health: config.health }, leases.sender)
  }

  /** Returns the commit's record. It is still current unless other processes write to the store. */
  async #recordOf({ task, record, newest }: DeliveryQueue): Promise<TaskRecord | undefined> {
    const { registrations, loadTask } = this.#parts
    const isNewest = record !== undefined && record.events.length >= newest
    return isNewest && !registrations.shared ? record : loadTask(task.id)
  }

  /**
   * Stores the events. Failing receivers may hold bytes of large events, but others' small events are still
   * loaded.
   */
  #store(queue: DeliveryQueue, prepared: PreparedEvent[]): void {
    const [first] = prepared
    const isFull = !this.hasCapacity(queue.task.owner)
    queue.isLarge = isFull && first !== undefined && first.body.byteLength > smallBytes
    if (queue.isLarge) return
    queue.batch = isFull ? prepared.slice(0, 1) : prepared
    for (const { body } of queue.batch) this.#count(queue, body.byteLength)
  }

  #count({ task }: DeliveryQueue, by: number): void {
    this.#bytes += by
    const bytes = (this.#bytesOf.get(task.owner) ?? 0) + by
    if (bytes > 0) this.#bytesOf.set(task.owner, bytes)
    else this.#bytesOf.delete(task.owner)
  }
}

const firstOf = ({ resend, settled }: Pick<Target, 'resend' | 'settled'>) => resend?.[0]?.[0] ?? settled + 1

const isOf = (task: TaskKey, record: TaskRecord) =>
  record.owner === task.owner && record.createdAt === task.createdAt

const isOld = ({ createdAt }: TaskKey) => millisOf(createdAt) < Date.now() - orphanAfterMs
