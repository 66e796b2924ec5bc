import { setTimeout as pause } from 'node:timers/promises'
import type { OpenPushConfig } from '../store/webhook-store.ts'

/**
 * Stored configs that found no room in mind. They are on the disk, so that it is enough to know that there are some: all
 * are looked through again once there is room.
 */
export class PassedOver {
  readonly #open: () => AsyncIterable<OpenPushConfig>
  readonly #wake: (config: OpenPushConfig) => void
  readonly #hasRoom: () => boolean
  #some = false
  #looking = false
  #stopped = false

  /** @param parts.wake may say `note` again, where there is no room after all */
  constructor(parts: {
    open: () => AsyncIterable<OpenPushConfig>
    wake: (config: OpenPushConfig) => void
    hasRoom: () => boolean
  }) {
    this.#open = parts.open
    this.#wake = parts.wake
    this.#hasRoom = parts.hasRoom
  }

  note(): void {
    this.#some = true
  }

  /** Nothing is woken any more. */
  stop(): void {
    this.#stopped = true
  }

  /** There is something to look for, and nobody looks. */
  get isDue(): boolean {
    return this.#some && !this.#looking && !this.#stopped && this.#hasRoom()
  }

  /** Wakes them as room allows. */
  async look(): Promise<void> {
    this.#looking = true
    try {
      while (this.#some && !this.#stopped) {
        this.#some = false
        for await (const config of this.#open()) {
          while (!this.#hasRoom() && !this.#stopped) await pause(50)
          if (this.#stopped) return
          this.#wake(config)
        }
      }
    } finally {
      this.#looking = false
    }
  }
}
