import type { TaskRecord } from '../store/store.ts'
import type { TaskKey } from '../store/webhook-store.ts'
import type { PreparedEvent } from './prepare-events.ts'

/**
 * The events of one task on their way to one receiver: one at a time, in the order of their numbers. It exists while there
 * is something to send, and holds numbers; bytes only for what is sent next.
 */
export interface DeliveryQueue {
  key: string
  task: TaskKey
  /** Absent: the global webhook. */
  configId: string | undefined
  /** Where it led last, and whose turn it takes there. */
  url: string
  host: string
  /** Number of the last event that is settled, and of the last one that is known of. */
  settled: number
  known: number
  /** Being looked at or delivered; `again`: something happened meanwhile. */
  running: boolean
  again: boolean
  /** Its next event found no room. */
  isLarge: boolean
  /** Kept on the disk, so that it may be left to the next start. */
  stored: boolean
  batch: PreparedEvent[]
  /** As the commit that woke it left the task; held only until the events are made of it, within the same turn. */
  record: TaskRecord | undefined
  /** Of the config that the batch was made for. */
  revision: string
  /** Ends what is under way. */
  abort: AbortController
}

export function queueKey(task: TaskKey, configId: string | undefined): string {
  return `${task.id} ${task.createdAt} ${configId ?? ''}`
}

export function hostOf(url: string): string {
  return URL.parse(url)?.host ?? ''
}

/** All lanes, with how many events wait in them. */
export class DeliveryQueues {
  readonly #lanes = new Map<string, DeliveryQueue>()
  /** Of stored configs, by host. */
  readonly #storedAt = new Map<string, number>()
  readonly #storedOf = new Map<string, number>()
  #stored = 0
  #global = 0
  #queued = 0

  /** Of stored configs. */
  get stored(): number {
    return this.#stored
  }

  /** Of those, the ones that lead to the host. */
  storedAt(host: string): number {
    return this.#storedAt.get(host) ?? 0
  }

  /** Of those, the ones for tasks of the owner. */
  storedOf(owner: string): number {
    return this.#storedOf.get(owner) ?? 0
  }

  /** Of the global webhook. */
  get global(): number {
    return this.#global
  }

  /** Events that are known of and not settled. */
  get queued(): number {
    return this.#queued
  }

  get(key: string): DeliveryQueue | undefined {
    return this.#lanes.get(key)
  }

  values(): Iterable<DeliveryQueue> {
    return this.#lanes.values()
  }

  add(lane: DeliveryQueue): void {
    this.#lanes.set(lane.key, lane)
    this.#queued += lane.known - lane.settled
    this.#count(lane, 1)
  }

  remove(lane: DeliveryQueue): void {
    if (this.#lanes.get(lane.key) !== lane) return
    this.#lanes.delete(lane.key)
    this.#queued -= lane.known - lane.settled
    this.#count(lane, -1)
  }

  /** It leads elsewhere now. */
  lead(lane: DeliveryQueue, url: string): void {
    const isThere = this.#lanes.get(lane.key) === lane
    if (isThere) this.#count(lane, -1)
    lane.url = url
    lane.host = hostOf(url)
    if (isThere) this.#count(lane, 1)
  }

  /** Numbers only grow, unless the config was set anew. */
  move(lane: DeliveryQueue, to: { settled?: number; known?: number }): void {
    const before = lane.known - lane.settled
    lane.settled = to.settled ?? lane.settled
    lane.known = Math.max(lane.known, to.known ?? 0, lane.settled)
    if (this.#lanes.get(lane.key) === lane) this.#queued += lane.known - lane.settled - before
  }

  #count({ stored, configId, host, task }: DeliveryQueue, by: 1 | -1): void {
    if (configId === undefined) this.#global += by
    if (!stored) return
    this.#stored += by
    addTo(this.#storedAt, host, by)
    addTo(this.#storedOf, task.owner, by)
  }
}

function addTo(counts: Map<string, number>, key: string, by: number): void {
  const sum = (counts.get(key) ?? 0) + by
  if (sum > 0) counts.set(key, sum)
  else counts.delete(key)
}
