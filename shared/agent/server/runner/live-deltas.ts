import type { EventBus } from '@parley/engine/events/event-bus'
import { type ContextRef, contextOf, type Part } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'

/**
 * Publishes parts of the main artifact while the handler runs (spec/streaming.md#deltas). Parts are held back until the
 * `working` event is published. If the task ends earlier, they are dropped, because the artifact event contains them.
 */
export class LiveDeltas {
  readonly artifactId: string
  readonly #bus: EventBus
  readonly #task: { id: string } & ContextRef
  #waiting: Part[] | undefined = []

  constructor(bus: EventBus, task: { id: string } & ContextRef, artifactId: string) {
    this.#bus = bus
    this.#task = task
    this.artifactId = artifactId
  }

  add(part: Part): void {
    if (part.kind === 'text' && part.text === '') return
    if (this.#waiting === undefined) this.#publish(part)
    else this.#waiting.push(part)
  }

  goLive(): void {
    const waiting = this.#waiting ?? []
    this.#waiting = undefined
    for (const part of waiting) this.#publish(part)
  }

  #publish(part: Part): void {
    const artifact = { artifactId: this.artifactId, name: 'result', parts: [{ ...part }] }
    const { id } = this.#task
    this.#bus.publish(id, [
      { kind: 'artifact-delta', taskId: id, ...contextOf(this.#task), timestamp: timestamp(), artifact },
    ])
  }
}
