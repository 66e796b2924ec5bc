import type { NumberedEvent } from '@parley/wire/codecs/parley/events'

/** Maximum number of events held while a lower number is missing. Further events are fetched again later. */
const heldMax = 1000

/** Merges the events of one task from two sources in sequence, without duplicates. */
export class OrderedEvents {
  readonly counts = { webhook: 0, log: 0 }
  readonly #ready: NumberedEvent[] = []
  readonly #held = new Map<number, { event: NumberedEvent; source: 'webhook' | 'log' }>()
  #last = 0
  #wake = () => {}

  /** The last sequence number before the first gap. */
  get lastInOrder(): number {
    return this.#last
  }

  offer(event: NumberedEvent, source: 'webhook' | 'log'): void {
    const { sequence } = event
    if (sequence <= this.#last || this.#held.has(sequence)) return
    if (sequence > this.#last + 1 && this.#held.size >= heldMax) return
    this.#held.set(sequence, { event, source })
    for (
      let next = this.#held.get(this.#last + 1);
      next !== undefined;
      next = this.#held.get(this.#last + 1)
    ) {
      this.#last += 1
      this.#held.delete(this.#last)
      this.#ready.push(next.event)
      this.counts[next.source] += 1
    }
    this.#wake()
  }

  /** Removes and returns the events that are in sequence. */
  take(): NumberedEvent[] {
    return this.#ready.splice(0)
  }

  /** Resolves when an event arrives or the signal aborts. */
  something(signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    signal.addEventListener('abort', () => resolve(), { once: true })
    return promise
  }
}
