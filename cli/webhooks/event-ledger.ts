import { type NumberedEvent, positionOf } from '@parley/wire/codecs/parley/events'

/** A delivery and how it compares with the earlier ones. */
export interface Entry {
  /** The number of this delivery of the event, starting at 1. */
  post: number
  /** The sequence numbers that were skipped before this one. */
  missing: number[]
  /** Whether a higher sequence number was received earlier. */
  late: boolean
  /** Whether the event was received before. */
  again: boolean
}

export interface Totals {
  tasks: number
  posts: number
  events: number
  repeated: number
  missing: number
  outOfOrder: number
}

interface Task {
  highest: number
  missing: Set<number>
}

/** Memory limits. The oldest entries are dropped first, and a jump of more than `gapMax` counts as one gap. */
const [tasksMax, eventsMax, gapMax] = [10_000, 100_000, 1000]

/** Checks that every event of a task arrives once and in order. A task first seen midway is checked from there. */
export class EventLedger {
  readonly #tasks = new Map<string, Task>()
  /** The number of deliveries per event, and whether one was accepted. */
  readonly #events = new Map<string, { posts: number; taken: boolean }>()
  readonly #totals = { tasks: 0, posts: 0, events: 0, repeated: 0, outOfOrder: 0 }
  #missing = 0

  get totals(): Totals {
    return { ...this.#totals, missing: this.#missing }
  }

  /** Number of deliveries of this event so far. */
  postsOf(event: NumberedEvent): number {
    return this.#events.get(positionOf(event).eventId)?.posts ?? 0
  }

  /** @param taken whether the response is 2xx, because a rejected delivery will be retried */
  note(event: NumberedEvent, taken: boolean): Entry {
    this.#totals.posts += 1
    const { eventId } = positionOf(event)
    const known = this.#events.get(eventId) ?? { posts: 0, taken: false }
    known.posts += 1
    this.#events.set(eventId, known)
    forgetOldest(this.#events, eventsMax)
    const entry: Entry = { post: known.posts, missing: [], late: false, again: known.taken }
    if (known.taken) this.#totals.repeated += 1
    else if (taken) {
      known.taken = true
      this.#totals.events += 1
      this.#follow(event, entry)
    }
    return entry
  }

  #follow(event: NumberedEvent, entry: Entry): void {
    const { taskId: id, sequence } = positionOf(event)
    const task = this.#tasks.get(id)
    if (task === undefined) {
      this.#totals.tasks += 1
      this.#tasks.set(id, { highest: sequence, missing: new Set() })
      forgetOldest(this.#tasks, tasksMax)
    } else if (sequence <= task.highest) {
      entry.late = true
      this.#totals.outOfOrder += 1
      if (task.missing.delete(sequence)) this.#missing -= 1
    } else {
      const gap = Math.min(sequence - task.highest - 1, gapMax)
      entry.missing = Array.from({ length: gap }, (_, index) => sequence - gap + index)
      for (const number of entry.missing) task.missing.add(number)
      this.#missing += gap
      task.highest = sequence
    }
  }
}

function forgetOldest(map: Map<string, unknown>, max: number): void {
  const [oldest] = map.keys()
  if (map.size > max && oldest !== undefined) map.delete(oldest)
}
