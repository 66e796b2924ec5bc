import { setTimeout as pause } from 'node:timers/promises'
import { persistently } from '@parley/kit/database/retry'
import { OwnerQueues } from '../queue/owner-queues.ts'
import type { TaskRecord } from '../store/store.ts'
import type { DeliveryAttempt, TaskKey } from '../store/webhook-store.ts'
import { DeferredConfigs } from './deferred-configs.ts'
import type { DeliveryResult } from './deliverer.ts'
import { DeliveryLeases } from './delivery-leases.ts'
import { type DeliveryQueue, DeliveryQueues, hostOf, queueKey } from './delivery-queue.ts'
import type { DispatcherOptions } from './dispatcher-options.ts'
import { EventBuffer, type NextEvent } from './event-buffer.ts'
import { FairQueue } from './fair-queue.ts'
import { QueueCapacity } from './queue-capacity.ts'
import { healthAfter, reportOutcome, settlementOf, storedAttempt } from './settlement.ts'

/** Maximum number of tasks that are loaded concurrently. */
const loadingMax = 8

/**
 * Delivers each event to its receivers (spec/webhooks.md#delivery), one at a time and in order for each task
 * and config. The commit of a task creates the obligation to deliver, and `committed` only signals that there
 * may be something to deliver. No stored event is lost, and a commit never waits.
 */
export class WebhookDispatcher {
  readonly #options: DispatcherOptions
  readonly #queuesMax: number
  readonly #retryMs: number
  readonly #fairQueue: FairQueue<DeliveryQueue>
  readonly #queues = new DeliveryQueues()
  /** Queues whose next event is large and waits for free bytes. */
  readonly #waitingForBytes = new OwnerQueues<DeliveryQueue>((queue) => ({
    owner: queue.task.owner,
    key: queue,
  }))
  readonly #events: EventBuffer
  readonly #capacity: QueueCapacity
  readonly #deferred: DeferredConfigs
  readonly #leases: DeliveryLeases
  readonly #background = new Set<Promise<unknown>>()
  readonly #stop = new AbortController()
  #loading = 0
  #draining = false
  #scanTimer: NodeJS.Timeout | undefined
  /** Whether this process has events to deliver, also between attempts. */
  readonly isBusy = () => this.#background.size + this.#queues.queued + this.#deferred.count > 0

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#queuesMax = options.queuesMax ?? 50_000
    this.#retryMs = options.retryMs ?? 1000
    this.#fairQueue = new FairQueue(options.limits)
    this.#leases = new DeliveryLeases(options)
    const [queues, leases] = [this.#queues, this.#leases]
    const { bytesMax = 64 * 1024 * 1024 } = options
    this.#events = new EventBuffer({ ...options, queues, leases, bytesMax })
    this.#capacity = new QueueCapacity(queues, this.#queuesMax, (host) => this.#fairQueue.isHealthy(host))
    this.#deferred = new DeferredConfigs({
      open: () => options.registrations.listOpen(),
      wake: (open) => this.#wake(open.task, open, open.settled, true),
      capacity: this.#capacity,
    })
    // Each deferred config counts as one event, because the size of its backlog is unknown.
    options.metrics.watchQueue(() => this.#queues.queued + this.#deferred.count)
    options.registrations.listen((task, id, config) => {
      const queue = this.#queues.get(queueKey(task, id))
      // The current delivery belongs to a config that was replaced or removed.
      if (queue !== undefined) this.#interrupt(queue, config === undefined)
      if (config?.open === true) this.#wake(task, config, config.settled, config.longRunning)
    })
    options.registrations.listenToResends((config) => {
      const { task, settled, longRunning } = config
      const queue = this.#queues.get(queueKey(task, config.id))
      if (queue !== undefined) queue.changed = true
      else this.#wake(task, config, settled, longRunning)
    })
  }

  /** The number of events that are waiting or being delivered. */
  get queued(): number {
    return this.#queues.queued
  }

  /** Starts to deliver the pending events of stored configs. Call it before tasks run. */
  async start(): Promise<void> {
    const { registrations, pollIntervalMs = 2000 } = this.#options
    if (registrations.shared) {
      // The scan finds the work of processes that died or missed an announcement.
      this.#scanTimer = setInterval(() => this.#scan(), pollIntervalMs).unref()
      return this.#scan()
    }
    const open = await registrations.loadOpen()
    if (open === 0) return
    this.#options.log.info({ configs: open }, 'resuming webhooks of an earlier process')
    this.#deferred.requestScan()
    this.#inBackground(this.#deferred.scan())
  }

  #scan(): void {
    this.#deferred.requestScan()
    if (this.#deferred.shouldScan) this.#inBackground(this.#persistently(() => this.#deferred.scan()))
  }

  /** Call this after each commit. It costs nothing for tasks without a webhook. */
  committed(before: TaskRecord, after: TaskRecord): void {
    const [from, newest] = [before.events.length, after.events.length]
    if (newest === from) return
    const { registrations, globalWebhook } = this.#options
    const mayHaveConfig = registrations.mayHaveConfig(after)
    if (!mayHaveConfig && globalWebhook === undefined) return
    const { id, owner, createdAt } = after
    const task = { id, owner, createdAt }
    if (!mayHaveConfig) this.#wakeGlobal(task, from, after)
    else this.#inBackground(this.#resolve(task, from, after))
  }

  /**
   * Starts no further events for stored configs. Continues the other configs until all events are delivered,
   * or until the limit aborts them.
   */
  async drain(limitMs: number): Promise<void> {
    this.#draining = true
    this.#deferred.stop()
    clearInterval(this.#scanTimer)
    const limit = AbortSignal.timeout(limitMs)
    const busy = () => this.#background.size > 0 || [...this.#queues.values()].some(({ stored }) => !stored)
    while (busy() && !limit.aborted) await pause(20)
    this.#stop.abort()
    for (const queue of this.#queues.values()) queue.abort.abort()
    const waiting = this.#queues.queued
    await Promise.allSettled(this.#background)
    await this.#leases.releaseAll()
    if (waiting > 0) this.#options.log.warn({ events: waiting }, 'stopped with undelivered webhook events')
  }

  /**
   * Wakes the task's configs, or the global webhook if there are no configs
   * (spec/webhooks.md#resolution-order).
   */
  async #resolve(task: TaskKey, from: number, after: TaskRecord): Promise<void> {
    const { registrations } = this.#options
    const newest = after.events.length
    const mark = registrations.mark(task)
    const configs = await this.#persistently(() => registrations.list(task))
    for (const config of configs ?? [])
      if (config.open) this.#wake(task, config, newest, config.longRunning, after)
    if (configs?.length !== 0) return
    registrations.forgetTask(task, mark)
    if (!registrations.hasSharedGlobal) return this.#wakeGlobal(task, from, after)
    const progress = await this.#persistently(() => registrations.globalProgress(task, from))
    if (progress?.open === true) this.#wake(task, progress, newest, false)
    else if (progress === undefined) this.#dropOverflow(task, newest - from)
  }

  #wake(
    task: TaskKey,
    config: { id: string; url: string; settled: number },
    newest: number,
    stored: boolean,
    record?: TaskRecord,
  ) {
    const key = queueKey(task, config.id)
    const existing = this.#queues.get(key)
    if (existing !== undefined) return this.#extend(existing, newest)
    if (this.#draining && stored) return
    // Deferred configs are loaded later.
    const exceeded = stored ? this.#capacity.exceededLimit(hostOf(config.url), task.owner) : undefined
    if (exceeded !== undefined) return this.#deferred.add(exceeded)
    this.#add({
      key,
      task,
      configId: config.id,
      url: config.url,
      settled: config.settled,
      newest,
      stored,
      record,
    })
  }

  #wakeGlobal(task: TaskKey, from: number, record: TaskRecord): void {
    const { globalWebhook } = this.#options
    const newest = record.events.length
    if (globalWebhook === undefined) return
    const key = queueKey(task, undefined)
    const existing = this.#queues.get(key)
    if (existing !== undefined) return this.#extend(existing, newest)
    if (this.#queues.global >= this.#queuesMax) return this.#dropOverflow(task, newest - from)
    const { url } = globalWebhook
    this.#add({ key, task, configId: undefined, url, settled: from, newest, stored: false, record })
  }

  #dropOverflow(task: TaskKey, events: number): void {
    const { metrics, log } = this.#options
    metrics.ended('queue_full', events)
    log.warn({ task_id: task.id, reason: 'queue_full', events }, 'webhook events were dropped')
  }

  #add(
    of: Pick<DeliveryQueue, 'key' | 'task' | 'configId' | 'url' | 'settled' | 'newest' | 'stored' | 'record'>,
  ): void {
    const queue: DeliveryQueue = {
      ...of,
      host: hostOf(of.url),
      running: false,
      changed: false,
      isLarge: false,
      batch: [],
      revision: '',
      abort: new AbortController(),
    }
    this.#queues.add(queue)
    this.#fairQueue.add(queue)
    this.#pump()
    // A waiting queue holds only sequence numbers.
    if (!queue.running) queue.record = undefined
  }

  #extend(queue: DeliveryQueue, newest: number): void {
    this.#queues.advance(queue, { newest })
    queue.changed = true
  }

  /** Aborts the current delivery and reloads the config. */
  #interrupt(queue: DeliveryQueue, isGone: boolean): void {
    queue.changed = true
    queue.abort.abort()
    queue.abort = new AbortController()
    this.#events.drop(queue)
    if (!isGone || queue.running) return
    this.#fairQueue.remove(queue)
    this.#waitingForBytes.remove(queue)
    this.#forget(queue)
  }

  #pump(): void {
    // Queues are loaded one at a time, because each reserves its bytes before the next one is checked.
    const large = this.#waitingForBytes.take((owner) => this.#events.hasCapacity(owner))
    if (large !== undefined) this.#fairQueue.add(large)
    while (this.#loading < loadingMax && !this.#stop.signal.aborted) {
      const queue = this.#fairQueue.take()
      if (queue === undefined) return
      this.#inBackground(this.#deliverNext(queue))
    }
  }

  #inBackground(work: Promise<unknown>): void {
    this.#background.add(work)
    const released = () => {
      this.#background.delete(work)
      this.#pump()
    }
    work.then(released, (error: unknown) => {
      this.#options.log.error({ err: error }, 'could not process webhook')
      released()
    })
  }

  async #deliverNext(queue: DeliveryQueue): Promise<void> {
    const { host, abort, task } = queue
    queue.running = true
    queue.changed = false
    const next = await this.#next(queue)
    if (next === undefined || abort.signal.aborted) {
      this.#fairQueue.done(host, task.owner, undefined)
      return this.#finish(queue, false)
    }
    const { event, ...receiver } = next
    let isFirst = true
    const tries: DeliveryAttempt[] = []
    const mayPost = async () => {
      const isCurrent = await this.#events.isCurrent(next, isFirst)
      isFirst = false
      if (!isCurrent) queue.changed = true
      return isCurrent && this.#leases.confirm(queue)
    }
    const result = await this.#options.deliverer.deliver({
      ...receiver,
      owner: task.owner,
      body: event.body,
      signal: abort.signal,
      mayPost,
      onAttempt: (attempt) => {
        tries.push(storedAttempt(event.sequence, attempt))
        if (attempt.willRetry) this.#inBackground(this.#recordAttempt(next, [...tries]))
      },
    })
    // Releases the host's slot before waiting for the store.
    const healthy = result.outcome === 'aborted' ? undefined : result.reason !== 'exhausted'
    this.#fairQueue.done(host, task.owner, healthy)
    this.#pump()
    let settled = false
    try {
      if (result.outcome !== 'aborted') await this.#settle(queue, next, { result, tries })
      settled = result.outcome !== 'aborted'
    } finally {
      this.#finish(queue, settled)
    }
  }

  /** Returns the next event, or undefined if there is nothing to deliver. */
  async #next(queue: DeliveryQueue): Promise<NextEvent | undefined> {
    this.#loading += 1
    try {
      return await this.#persistently(() => this.#events.next(queue, this.#draining))
    } catch (error) {
      this.#options.log.error({ err: error, task_id: queue.task.id }, 'could not load webhook event')
      return undefined
    } finally {
      queue.record = undefined
      this.#loading -= 1
      this.#pump()
    }
  }

  /** Records a failed attempt that will be retried. The final outcome is stored with the settlement. */
  async #recordAttempt(next: NextEvent, tries: readonly DeliveryAttempt[]): Promise<void> {
    const { config, settled, resend } = next
    if (config === undefined) return
    const kept = resend && { resend: { before: resend, after: resend } }
    const settlement = { settled, open: true, health: healthAfter(config.health, tries), ...kept }
    try {
      await this.#options.registrations.settle(config, settlement, this.#leases.sender)
    } catch (error) {
      this.#options.log.debug(
        { err: error, task_id: config.task.id },
        'could not record a failed webhook attempt',
      )
    }
  }

  async #settle(
    queue: DeliveryQueue,
    next: NextEvent,
    ended: { result: DeliveryResult; tries: readonly DeliveryAttempt[] },
  ): Promise<void> {
    const { registrations } = this.#options
    const { event, config, resend } = next
    this.#events.shift(queue, event)
    if (this.#events.isHalfFull) this.#events.drop(queue)
    if (resend === undefined) this.#queues.advance(queue, { settled: event.sequence })
    else queue.changed = true
    reportOutcome(this.#options, queue, next, ended.result)
    if (event.last) registrations.forgetTask(queue.task, registrations.mark(queue.task))
    if (config === undefined) return
    const settlement = settlementOf(config, next, ended)
    const { sender } = this.#leases
    const settled = await this.#persistently(() => registrations.settle(config, settlement, sender))
    if (settled === false) this.#leases.forget(queue)
  }

  #finish(queue: DeliveryQueue, more: boolean): void {
    queue.running = false
    if (this.#stop.signal.aborted) return
    if (queue.isLarge) this.#waitingForBytes.add(queue)
    else if (queue.changed || (more && queue.newest > queue.settled)) this.#fairQueue.add(queue)
    else if (this.#leases.isHeld(queue)) this.#inBackground(this.#release(queue))
    else this.#forget(queue)
  }

  /** Keeps the queue until the lease is released, so that new events acquire the lease again. */
  async #release(queue: DeliveryQueue): Promise<void> {
    queue.running = true
    const released = await this.#leases.release(queue)
    queue.running = false
    if (this.#stop.signal.aborted) return
    if (queue.changed || !released) this.#fairQueue.add(queue)
    else this.#forget(queue)
  }

  #forget(queue: DeliveryQueue): void {
    this.#events.drop(queue)
    this.#leases.forget(queue)
    this.#queues.remove(queue)
    if (this.#deferred.shouldScan) this.#inBackground(this.#deferred.scan())
  }

  #persistently<T>(operation: () => Promise<T>): Promise<T | undefined> {
    return persistently(operation, {
      retryMs: this.#retryMs,
      signal: this.#stop.signal,
      log: this.#options.log,
    })
  }
}
