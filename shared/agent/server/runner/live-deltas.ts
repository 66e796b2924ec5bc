import { randomUUID } from 'node:crypto'
import type { EventBus } from '@parley/engine/events/event-bus'
import { type ContextRef, contextOf, type Part } from '@parley/wire/model/task'
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
  #waiting: { part: Part; artifact: StreamedArtifact }[] | undefined = []

  constructor(bus: EventBus, task: { id: string } & ContextRef) {
    this.#bus = bus
    this.#task = task
  }

  /** The IDs of the artifacts that have deltas, by key. */
  get artifactIds(): ReadonlyMap<string, string> {
    return this.#ids
  }

  add(part: Part, artifact: StreamedArtifact = mainArtifact): void {
    if (part.kind === 'text' && part.text === '') return
    if (this.#waiting === undefined) this.#publish(part, artifact)
    else this.#waiting.push({ part, artifact })
  }

  goLive(): void {
    const waiting = this.#waiting ?? []
    this.#waiting = undefined
    for (const { part, artifact } of waiting) this.#publish(part, artifact)
  }

  #publish(part: Part, { key, name }: StreamedArtifact): void {
    const artifactId = this.#ids.get(key) ?? randomUUID()
    this.#ids.set(key, artifactId)
    const artifact = { artifactId, name, parts: [{ ...part }] }
    const { id } = this.#task
    this.#bus.publish(id, [
      { kind: 'artifact-delta', taskId: id, ...contextOf(this.#task), timestamp: timestamp(), artifact },
    ])
  }
}
