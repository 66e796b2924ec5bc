import { randomUUID } from 'node:crypto'
import { performance } from 'node:perf_hooks'
import { setTimeout as pause } from 'node:timers/promises'
import type { Log } from '@parley/kit/process/log'
import type { DeliveryQueue } from './delivery-queue.ts'
import type { Registrations } from './registrations.ts'

interface Parts {
  registrations: Registrations
  log: Log
  /** How long a claim holds without being renewed. Default 6 s. */
  claimMs?: number
}

/** What letting go of claims may take at a stop; the others are over by their time. */
const lettingGoMs = 1000

/**
 * Which lanes this process may send, where several processes send for one agent: one of them per task and config, so that
 * the order holds. A claim is renewed while its lane is under way; one of a process that died is over by its time. A process
 * that was frozen sees by its clock that a claim may be another's by now, and asks before it sends.
 */
export class DeliveryLeases {
  readonly sender = randomUUID()
  readonly #registrations: Registrations
  readonly #log: Log
  readonly #claimMs: number
  /** When each was taken or renewed last, by a clock that goes on while the process does not. */
  readonly #held = new Map<DeliveryQueue, number>()
  #timer: NodeJS.Timeout | undefined

  constructor({ registrations, log, claimMs = 6000 }: Parts) {
    this.#registrations = registrations
    this.#log = log
    this.#claimMs = claimMs
  }

  /** The claim is ours, or was a moment ago: it is to be let go. */
  holds(lane: DeliveryQueue): boolean {
    return this.#held.has(lane)
  }

  /** False: another process sends, and is told to look again; or the config is gone. @throws ParleyError Unavailable */
  async hold(lane: DeliveryQueue): Promise<boolean> {
    if (!this.#registrations.shared || lane.configId === undefined || this.#isFresh(lane)) return true
    const at = performance.now()
    const key = { task: lane.task, id: lane.configId }
    const claim = await this.#registrations.claim(key, this.sender, this.#claimMs)
    if (claim !== 'ours') {
      this.#held.delete(lane)
      return false
    }
    this.#held.set(lane, at)
    this.#timer ??= setInterval(() => this.#renew(), this.#claimMs / 3).unref()
    return true
  }

  /** To be asked right before each attempt: false where another may have sent since. Never rejects. */
  async stillOurs(lane: DeliveryQueue): Promise<boolean> {
    if (!this.#registrations.shared || lane.configId === undefined || this.#isFresh(lane)) return true
    const at = performance.now()
    const key = { task: lane.task, id: lane.configId }
    try {
      if (await this.#registrations.renew(key, this.sender, this.#claimMs)) {
        this.#held.set(lane, at)
        return true
      }
    } catch (error) {
      this.#log.warn({ err: error, task_id: lane.task.id }, 'a claim on webhooks could not be renewed')
    }
    this.#held.delete(lane)
    return false
  }

  /** The storage knows another as the sender, or another config, or the lane is gone: nothing is taken for granted any more. */
  lost(lane: DeliveryQueue): void {
    this.#held.delete(lane)
  }

  /** False: others came meanwhile for what may be new; it stays ours. Never rejects. */
  async release(lane: DeliveryQueue): Promise<boolean> {
    const key = { task: lane.task, id: lane.configId ?? '' }
    try {
      if (!(await this.#registrations.release(key, this.sender))) return false
    } catch (error) {
      this.#log.debug({ err: error, task_id: lane.task.id }, 'a claim on webhooks ends by its time')
    }
    this.#held.delete(lane)
    return true
  }

  /** At a stop: other processes need not wait. */
  async releaseAll(): Promise<void> {
    clearInterval(this.#timer)
    const all = Promise.all([...this.#held.keys()].map((lane) => this.release(lane)))
    await Promise.race([all, pause(lettingGoMs, undefined, { ref: false })])
  }

  #isFresh(lane: DeliveryQueue): boolean {
    const at = this.#held.get(lane)
    return at !== undefined && performance.now() - at < this.#claimMs / 2
  }

  #renew(): void {
    for (const [lane, at] of this.#held)
      if (lane.running && performance.now() - at >= this.#claimMs / 4) void this.#renewOne(lane)
  }

  /** A claim that is lost ends what is under way. */
  async #renewOne(lane: DeliveryQueue): Promise<void> {
    this.#held.set(lane, Number.NEGATIVE_INFINITY)
    if (await this.stillOurs(lane)) return
    lane.abort.abort()
    lane.abort = new AbortController()
  }
}
