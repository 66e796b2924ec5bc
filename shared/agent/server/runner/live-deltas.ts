import { randomUUID } from 'node:crypto'
import type { EventBus } from '@parley/engine/events/event-bus'
import { type Artifact, type ContextRef, contextOf, type Part } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import { mainArtifact, type StreamedArtifact } from '../../author/output.ts'

/**
 * Publishes parts of unfinished artifacts while the handler runs (spec/streaming.md#deltas). Parts are held back until the
 * `working` event is published. If the task ends earlier, they are dropped, because the artifact event contains them.
 */
export class LiveDeltas {
  readonly #bus: EventBus
  readonly #task: { id: string } & ContextRef
  readonly #ids = new Map<string, string>()
  #waiting: Artifact[] | undefined = []

  constructor(bus: EventBus, task: { id: string } & ContextRef) {
    this.#bus = bus
    this.#task = task
  }

  /** The IDs of the artifacts that have deltas, by key. */
  get artifactIds(): ReadonlyMap<string, string> {
    return this.#ids
  }

  add(part: Part, { key, name }: StreamedArtifact = mainArtifact): void {
    if (part.kind === 'text' && part.text === '') return
    // Held-back deltas have an ID too, because the handler may end before they are published.
    const artifactId = this.#ids.get(key) ?? randomUUID()
    this.#ids.set(key, artifactId)
    const artifact = { artifactId, name, parts: [{ ...part }] }
    if (this.#waiting === undefined) this.#publish(artifact)
    else this.#waiting.push(artifact)
  }

  goLive(): void {
    const waiting = this.#waiting ?? []
    this.#waiting = undefined
    for (const artifact of waiting) this.#publish(artifact)
  }

  #publish(artifact: Artifact): void {
    const { id } = this.#task
    this.#bus.publish(id, [
      { kind: 'artifact-delta', taskId: id, ...contextOf(this.#task), timestamp: timestamp(), artifact },
    ])
  }
}
