import { setTimeout as pause } from 'node:timers/promises'
import { persistently } from '@parley/kit/database/retry'
import type { Log } from '@parley/kit/process/log'
import type { WebhookMetrics } from '@parley/kit/process/webhook-metrics'
import { OwnerQueues } from '../queue/owner-queues.ts'
import type { TaskRecord } from '../store/store.ts'
import type { TaskKey } from '../store/webhook-store.ts'
import { DeferredConfigs } from './deferred-configs.ts'
import type { Attempt, Deliverer, DeliveryResult } from './deliverer.ts'
import { DeliveryLeases } from './delivery-leases.ts'
import { type DeliveryQueue, DeliveryQueues, hostOf, queueKey } from './delivery-queue.ts'
import { EventBuffer, type GlobalWebhook, type NextEvent } from './event-buffer.ts'
import { FairQueue, type FairQueueLimits } from './fair-queue.ts'
import { QueueCapacity } from './queue-capacity.ts'
import type { Registrations } from './registrations.ts'
import { healthAfter, reportOutcome, settlementOf } from './settlement.ts'

export interface DispatcherOptions {
  registrations: Registrations
  /** Of the store. */
  loadTask: (id: string) => Promise<TaskRecord | undefined>
  deliverer: Pick<Deliverer, 'deliver'>
  globalWebhook?: GlobalWebhook | undefined
  metrics: WebhookMetrics
  log: Log
  limits?: FairQueueLimits
  /** Tasks and receivers of stored configs with undelivered events that are kept in memory ({@link QueueCapacity}); others are looked up
   * later. As many of the global webhook. Default 50,000. */
  lanesMax?: number
  /** Bytes of events held for sending before no further large one is; of one owner at most as many as are free. Default 64 MiB. */
  bytesMax?: number
  /** Before what the storage refused is tried again. Default 1 s. */
  retryMs?: number
  /** Where several processes send: how often what nobody sends is looked for, and how long a claim holds. Default 2 s and 6 s. */
  lookEveryMs?: number
  claimMs?: number
}

/** Records read at the same time. */
const loadingMax = 8

/**
 * Brings each event to its receivers (spec/webhooks.md#delivery): one under way per task and
 * config, in order. The commit of the task is the obligation; what is told here is only that there may be something to do,
 * so nothing is lost that the store knows of, and a commit never waits.
 */
export class WebhookDispatcher {
  readonly #options: DispatcherOptions
  readonly #lanesMax: number
  readonly #retryMs: number
  readonly #queue: FairQueue<DeliveryQueue>
  readonly #lanes = new DeliveryQueues()
  /** DeliveryQueues whose next event is large, while there is no room for its bytes. */
  readonly #large = new OwnerQueues<DeliveryQueue>((lane) => ({ owner: lane.task.owner, key: lane }))
  readonly #events: EventBuffer
  readonly #room: QueueCapacity
  readonly #passedOver: DeferredConfigs
  readonly #claims: DeliveryLeases
  readonly #turns = new Set<Promise<unknown>>()
  readonly #stop = new AbortController()
  #loading = 0
  #draining = false
  #looking: NodeJS.Timeout | undefined

  constructor(options: DispatcherOptions) {
    this.#options = options
    this.#lanesMax = options.lanesMax ?? 50_000
    this.#retryMs = options.retryMs ?? 1000
    this.#queue = new FairQueue(options.limits)
    this.#claims = new DeliveryLeases(options)
    const [lanes, claims] = [this.#lanes, this.#claims]
    const { bytesMax = 64 * 1024 * 1024 } = options
    this.#events = new EventBuffer({ ...options, lanes, claims, bytesMax })
    this.#room = new QueueCapacity(lanes, this.#lanesMax, (host) => this.#queue.isWell(host))
    this.#passedOver = new DeferredConfigs({
      open: () => options.registrations.storedOpen(),
      wake: (open) => this.#wake(open.task, open, open.settled, true),
      room: this.#room,
    })
    // Of what was passed over nothing is kept but that it owes something.
    options.metrics.watchQueue(() => this.#lanes.queued + this.#passedOver.count)
    options.registrations.listen((task, id, config) => {
      const lane = this.#lanes.get(queueKey(task, id))
      // What is under way belongs to a config that is gone.
      if (lane !== undefined) this.#interrupt(lane, config === undefined)
      if (config?.open === true) this.#wake(task, config, config.settled, config.longRunning)
    })
  }

  /** Events that wait or are under way. */
  get queued(): number {
    return this.#lanes.queued
  }

  /** To be called before tasks run: stored configs are known from then on, and what they still owe goes out. */
  async start(): Promise<void> {
    const { registrations, lookEveryMs = 2000 } = this.#options
    if (registrations.shared) {
      // What a process that died, or heard of nothing, has left.
      this.#looking = setInterval(() => this.#look(), lookEveryMs).unref()
      return this.#look()
    }
    const open = await registrations.loadOpen()
    if (open === 0) return
    this.#options.log.info({ configs: open }, 'webhooks of an earlier process go on')
    this.#passedOver.suspect()
    this.#inBackground(this.#passedOver.look())
  }

  #look(): void {
    this.#passedOver.suspect()
    if (this.#passedOver.isDue) this.#inBackground(this.#persistently(() => this.#passedOver.look()))
  }

  /** After a commit. Costs nothing where nobody listens. */
  committed(before: TaskRecord, after: TaskRecord): void {
    const [from, known] = [before.events.length, after.events.length]
    if (known === from) return
    const { registrations, globalWebhook } = this.#options
    const mayHave = registrations.mayHave(after)
    if (!mayHave && globalWebhook === undefined) return
    const { id, owner, createdAt } = after
    const task = { id, owner, createdAt }
    if (!mayHave) this.#wakeGlobal(task, from, after)
    else this.#inBackground(this.#resolve(task, from, after))
  }

  /**
   * Nothing of stored configs is begun any more; the rest goes on until all is sent or the time is over, which ends what is
   * under way then.
   */
  async drain(limitMs: number): Promise<void> {
    this.#draining = true
    this.#passedOver.stop()
    clearInterval(this.#looking)
    const limit = AbortSignal.timeout(limitMs)
    const busy = () => this.#turns.size > 0 || [...this.#lanes.values()].some(({ stored }) => !stored)
    while (busy() && !limit.aborted) await pause(20)
    this.#stop.abort()
    for (const lane of this.#lanes.values()) lane.abort.abort()
    const waiting = this.#lanes.queued
    await Promise.allSettled(this.#turns)
    await this.#claims.releaseAll()
    if (waiting > 0) this.#options.log.warn({ events: waiting }, 'stopped with undelivered webhook events')
  }

  /** The configs of the task, else the global webhook, else none (spec/webhooks.md#resolution-order). */
  async #resolve(task: TaskKey, from: number, after: TaskRecord): Promise<void> {
    const { registrations } = this.#options
    const known = after.events.length
    const mark = registrations.mark(task)
    const configs = await this.#persistently(() => registrations.list(task))
    for (const config of configs ?? [])
      if (config.open) this.#wake(task, config, known, config.longRunning, after)
    if (configs?.length !== 0) return
    registrations.noneLeft(task, mark)
    if (!registrations.hasSharedGlobal) return this.#wakeGlobal(task, from, after)
    const progress = await this.#persistently(() => registrations.ofGlobal(task, from))
    if (progress?.open === true) this.#wake(task, progress, known, false)
    else if (progress === undefined) this.#overfull(task, known - from)
  }

  #wake(
    task: TaskKey,
    config: { id: string; url: string; settled: number },
    known: number,
    stored: boolean,
    record?: TaskRecord,
  ) {
    const key = queueKey(task, config.id)
    const there = this.#lanes.get(key)
    if (there !== undefined) return this.#again(there, known)
    if (this.#draining && stored) return
    // What is passed over is looked up later.
    const full = stored ? this.#room.full(hostOf(config.url), task.owner) : undefined
    if (full !== undefined) return this.#passedOver.note(full)
    this.#add({
      key,
      task,
      configId: config.id,
      url: config.url,
      settled: config.settled,
      known,
      stored,
      record,
    })
  }

  #wakeGlobal(task: TaskKey, from: number, record: TaskRecord): void {
    const { globalWebhook } = this.#options
    const known = record.events.length
    if (globalWebhook === undefined) return
    const key = queueKey(task, undefined)
    const there = this.#lanes.get(key)
    if (there !== undefined) return this.#again(there, known)
    if (this.#lanes.global >= this.#lanesMax) return this.#overfull(task, known - from)
    const { url } = globalWebhook
    this.#add({ key, task, configId: undefined, url, settled: from, known, stored: false, record })
  }

  #overfull(task: TaskKey, events: number): void {
    const { metrics, log } = this.#options
    metrics.ended('queue_full', events)
    log.warn({ task_id: task.id, reason: 'queue_full', events }, 'webhook events are lost')
  }

  #add(
    of: Pick<DeliveryQueue, 'key' | 'task' | 'configId' | 'url' | 'settled' | 'known' | 'stored' | 'record'>,
  ): void {
    const lane: DeliveryQueue = {
      ...of,
      host: hostOf(of.url),
      running: false,
      again: false,
      isLarge: false,
      batch: [],
      revision: '',
      abort: new AbortController(),
    }
    this.#lanes.add(lane)
    this.#queue.add(lane)
    this.#pump()
    // What waits holds numbers alone.
    if (!lane.running) lane.record = undefined
  }

  #again(lane: DeliveryQueue, known: number): void {
    this.#lanes.move(lane, { known })
    lane.again = true
  }

  /** What is under way ends; what comes next is read anew. */
  #interrupt(lane: DeliveryQueue, isGone: boolean): void {
    lane.again = true
    lane.abort.abort()
    lane.abort = new AbortController()
    this.#events.drop(lane)
    if (!isGone || lane.running) return
    this.#queue.remove(lane)
    this.#large.remove(lane)
    this.#forget(lane)
  }

  #pump(): void {
    // One at a time: each holds what it has read before the next one looks for room.
    const large = this.#large.take((owner) => this.#events.hasRoom(owner))
    if (large !== undefined) this.#queue.add(large)
    while (this.#loading < loadingMax && !this.#stop.signal.aborted) {
      const lane = this.#queue.take()
      if (lane === undefined) return
      this.#inBackground(this.#turn(lane))
    }
  }

  #inBackground(work: Promise<unknown>): void {
    this.#turns.add(work)
    const over = () => {
      this.#turns.delete(work)
      this.#pump()
    }
    work.then(over, (error: unknown) => {
      this.#options.log.error({ err: error }, 'webhook could not be handled')
      over()
    })
  }

  async #turn(lane: DeliveryQueue): Promise<void> {
    const { host, abort, task } = lane
    lane.running = true
    lane.again = false
    const next = await this.#next(lane)
    if (next === undefined || abort.signal.aborted) {
      this.#queue.done(host, task.owner, undefined)
      return this.#leave(lane, false)
    }
    const { url, token, event } = next
    let isFirst = true
    const mayPost = async () => {
      const stands = await this.#events.stands(next, isFirst)
      isFirst = false
      if (!stands) lane.again = true
      return stands && this.#claims.stillOurs(lane)
    }
    const result = await this.#options.deliverer.deliver({
      url,
      owner: task.owner,
      token,
      body: event.body,
      signal: abort.signal,
      mayPost,
      onAttempt: (attempt) => {
        if (attempt.again) this.#inBackground(this.#tellOwner(next, attempt))
      },
    })
    // The place at the host is free before the storage has answered.
    const healthy = result.outcome === 'aborted' ? undefined : result.reason !== 'exhausted'
    this.#queue.done(host, task.owner, healthy)
    this.#pump()
    let settled = false
    try {
      if (result.outcome !== 'aborted') await this.#settle(lane, next, result)
      settled = result.outcome !== 'aborted'
    } finally {
      this.#leave(lane, settled)
    }
  }

  /** Undefined: nothing is to be sent, or no longer there. */
  async #next(lane: DeliveryQueue): Promise<NextEvent | undefined> {
    this.#loading += 1
    try {
      return await this.#persistently(() => this.#events.read(lane, this.#draining))
    } catch (error) {
      this.#options.log.error({ err: error, task_id: lane.task.id }, 'webhook event could not be read')
      return undefined
    } finally {
      lane.record = undefined
      this.#loading -= 1
      this.#pump()
    }
  }

  /** How an event fares that will be tried again; what becomes of it is told with its settlement. */
  async #tellOwner({ config, settled }: NextEvent, attempt: Attempt): Promise<void> {
    if (config === undefined) return
    const { number: attempts, status: lastStatus, error: lastError } = attempt
    const health = healthAfter(config.health, { attempts, lastStatus, lastError })
    try {
      await this.#options.registrations.settle(config, { settled, open: true, health }, this.#claims.sender)
    } catch (error) {
      this.#options.log.debug({ err: error, task_id: config.task.id }, 'a failed attempt could not be noted')
    }
  }

  async #settle(lane: DeliveryQueue, next: NextEvent, result: DeliveryResult): Promise<void> {
    const { registrations } = this.#options
    const { event, config } = next
    this.#events.shift(lane, event)
    if (this.#events.isHalfFull) this.#events.drop(lane)
    this.#lanes.move(lane, { settled: event.sequence })
    reportOutcome(this.#options, lane, next, result)
    if (event.last) registrations.noneLeft(lane.task, registrations.mark(lane.task))
    if (config === undefined) return
    const settlement = settlementOf(config.health, event, result)
    const { sender } = this.#claims
    const settled = await this.#persistently(() => registrations.settle(config, settlement, sender))
    if (settled === false) this.#claims.lost(lane)
  }

  #leave(lane: DeliveryQueue, more: boolean): void {
    lane.running = false
    if (this.#stop.signal.aborted) return
    if (lane.isLarge) this.#large.add(lane)
    else if (lane.again || (more && lane.known > lane.settled)) this.#queue.add(lane)
    else if (this.#claims.holds(lane)) this.#inBackground(this.#letGo(lane))
    else this.#forget(lane)
  }

  /** The lane stays until that is done, so that what comes meanwhile claims anew. */
  async #letGo(lane: DeliveryQueue): Promise<void> {
    lane.running = true
    const over = await this.#claims.release(lane)
    lane.running = false
    if (this.#stop.signal.aborted) return
    if (lane.again || !over) this.#queue.add(lane)
    else this.#forget(lane)
  }

  #forget(lane: DeliveryQueue): void {
    this.#events.drop(lane)
    this.#claims.lost(lane)
    this.#lanes.remove(lane)
    if (this.#passedOver.isDue) this.#inBackground(this.#passedOver.look())
  }

  #persistently<T>(ask: () => Promise<T>): Promise<T | undefined> {
    return persistently(ask, {
      retryMs: this.#retryMs,
      signal: this.#stop.signal,
      log: this.#options.log,
    })
  }
}
