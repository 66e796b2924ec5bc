import { setTimeout as pause } from 'node:timers/promises'
import type { OpenPushConfig } from '../store/webhook-store.ts'
import type { CapacityLimit, QueueCapacity } from './queue-capacity.ts'

/**
 * Stored configs that found no room in memory, or none for their host or owner. They are on the disk, so that it is enough to know that
 * there are some: all are looked through again once there is room.
 */
export class DeferredConfigs {
  readonly #open: () => AsyncIterable<OpenPushConfig>
  readonly #wake: (config: OpenPushConfig) => void
  readonly #room: Pick<QueueCapacity, 'hasRoomAgain'>
  /** What was full, by name. */
  readonly #full = new Map<string, CapacityLimit>()
  #some = false
  #count = 0
  #looking = false
  #stopped = false

  /** @param parts.wake may say `note` again, where there is no room after all */
  constructor(parts: {
    open: () => AsyncIterable<OpenPushConfig>
    wake: (config: OpenPushConfig) => void
    room: Pick<QueueCapacity, 'hasRoomAgain'>
  }) {
    this.#open = parts.open
    this.#wake = parts.wake
    this.#room = parts.room
  }

  /** About how many there are. */
  get count(): number {
    return this.#count
  }

  /** @param full why one was passed over */
  note(full: CapacityLimit): void {
    this.#count += 1
    this.#full.set(full.name, full)
  }

  /** There may be some that nobody has told of. */
  suspect(): void {
    this.#some = true
  }

  /** Nothing is woken any more. */
  stop(): void {
    this.#stopped = true
  }

  /** There is something to look for, and nobody looks. */
  get isDue(): boolean {
    return !this.#looking && !this.#stopped && this.#room.hasRoomAgain() && this.#isLeft()
  }

  /** Wakes them as room allows. */
  async look(): Promise<void> {
    this.#looking = true
    try {
      do {
        this.#some = false
        this.#full.clear()
        this.#count = 0
        for await (const config of this.#open()) {
          while (!this.#room.hasRoomAgain() && !this.#stopped) await pause(50)
          if (this.#stopped) return
          this.#wake(config)
        }
        // What became free meanwhile told nobody.
      } while (!this.#stopped && this.#isLeft())
    } finally {
      this.#looking = false
    }
  }

  #isLeft(): boolean {
    return this.#some || [...this.#full.values()].some((share) => share.hasRoomAgain())
  }
}
