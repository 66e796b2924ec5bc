import type { BusMessage, EventBus, LiveItem, Subscription } from './event-bus.ts'

type Listener = (item: BusMessage) => void

const ready = Promise.resolve()

/** The event bus of an agent that runs as a single process. */
export class InProcessEventBus implements EventBus {
  readonly #listeners = new Map<string, Set<Listener>>()

  async ping(): Promise<void> {}

  publish(taskId: string, items: readonly LiveItem[]): void {
    const listeners = this.#listeners.get(taskId)
    if (listeners === undefined) return
    for (const item of items) for (const listener of listeners) listener(item)
  }

  subscribe(taskId: string, listener: Listener): Subscription {
    const listeners = this.#listeners.get(taskId) ?? new Set()
    this.#listeners.set(taskId, listeners)
    listeners.add(listener)
    return {
      ready,
      [Symbol.dispose]: () => {
        listeners.delete(listener)
        if (listeners.size === 0 && this.#listeners.get(taskId) === listeners) this.#listeners.delete(taskId)
      },
    }
  }

  /** Number of topics with listeners, for leak tests. */
  get topics(): number {
    return this.#listeners.size
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listeners.clear()
  }
}
