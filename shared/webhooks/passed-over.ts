import { setTimeout as pause } from 'node:timers/promises'
import type { OpenPushConfig } from '../store/webhook-store.ts'

/**
 * Stored configs that found no room in mind, or none for their host. They are on the disk, so that it is enough to know that
 * there are some: all are looked through again once there is room.
 */
export class PassedOver {
  readonly #open: () => AsyncIterable<OpenPushConfig>
  readonly #wake: (config: OpenPushConfig) => void
  readonly #hasRoom: (host?: string) => boolean
  /** Whose share was full. */
  readonly #hosts = new Set<string>()
  #some = false
  #count = 0
  #looking = false
  #stopped = false

  /** @param parts.wake may say `note` again, where there is no room after all */
  constructor(parts: {
    open: () => AsyncIterable<OpenPushConfig>
    wake: (config: OpenPushConfig) => void
    /** In all, or for one host. */
    hasRoom: (host?: string) => boolean
  }) {
    this.#open = parts.open
    this.#wake = parts.wake
    this.#hasRoom = parts.hasRoom
  }

  /** About how many there are. */
  get count(): number {
    return this.#count
  }

  /** @param host where only its share was full */
  note(host?: string): void {
    this.#count += 1
    if (host === undefined) this.#some = true
    else this.#hosts.add(host)
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
    return !this.#looking && !this.#stopped && this.#hasRoom() && this.#isLeft()
  }

  /** Wakes them as room allows. */
  async look(): Promise<void> {
    this.#looking = true
    try {
      do {
        this.#some = false
        this.#hosts.clear()
        this.#count = 0
        for await (const config of this.#open()) {
          while (!this.#hasRoom() && !this.#stopped) await pause(50)
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
    return this.#some || [...this.#hosts].some((host) => this.#hasRoom(host))
  }
}
