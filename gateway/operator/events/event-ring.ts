import { randomBytes } from 'node:crypto'
import { ownsFor } from '@parley/kit/auth/caller'
import { type CallerView, showsTexts } from '../view.ts'

export const liveEventTypes = ['task', 'decision', 'agent', 'delivery', 'audit', 'load', 'reset'] as const
export type LiveEventType = (typeof liveEventTypes)[number]

/** A change that streams send. */
export interface LiveEvent {
  type: LiveEventType
  /** The owner of the entry. Without an owner, only operators receive the event. `reset` is sent to everyone. */
  owner?: string | undefined
  /** Returns the data with or without the texts of the entry. */
  data: (texts: boolean) => unknown
}

/** An event with its number and its text, which all streams share. */
interface Numbered {
  n: number
  event: LiveEvent
  texts?: string
  plain?: string
}

/** A part of the ring for one stream. */
export interface RingPart {
  /** The frames for the view, in order. */
  frames: string[]
  /** The number of the last event that was considered. */
  position: number
  /** Whether events after the given position are missing, so that the client must reload. */
  isCut: boolean
}

const sizeMax = 2000

/**
 * The last events of this gateway. A stream reads them from its position, so that a slow stream needs no separate memory. IDs are
 * `<epoch>-<n>`; the epoch changes when the numbering begins again.
 */
export class EventRing {
  readonly #events: Numbered[] = []
  readonly #sizeMax: number
  #epoch = newEpoch()
  #last = 0

  constructor(max = sizeMax) {
    this.#sizeMax = max
  }

  /** The position after the newest event. */
  get last(): number {
    return this.#last
  }

  add(event: LiveEvent): void {
    this.#last += 1
    this.#events.push({ n: this.#last, event })
    if (this.#events.length > this.#sizeMax) this.#events.splice(0, this.#events.length - this.#sizeMax)
  }

  /** Forgets all events. Streams that continue with an earlier ID receive `reset`. */
  clear(): void {
    this.#events.length = 0
    this.#epoch = newEpoch()
    this.#last = 0
  }

  /** The position of an ID. Undefined if the events after it are not kept. */
  positionOf(id: string): number | undefined {
    const [, epoch, digits = ''] = /^([\da-f]{12})-(\d{1,15})$/.exec(id) ?? []
    const n = Number(digits)
    if (epoch !== this.#epoch || n > this.#last || n < this.#last - this.#events.length) return undefined
    return n
  }

  /** Returns up to `max` frames after the position. */
  read(position: number, view: CallerView, wanted: ReadonlySet<LiveEventType>, max = 200): RingPart {
    const oldest = this.#last - this.#events.length
    const part: RingPart = { frames: [], position, isCut: position < oldest || position > this.#last }
    if (part.isCut) return { ...part, position: this.#last }
    for (let at = position - oldest; at < this.#events.length && part.frames.length < max; at += 1) {
      const one = this.#events[at]
      if (one === undefined) break
      part.position = one.n
      if (isFor(one.event, view) && (wanted.has(one.event.type) || one.event.type === 'reset'))
        part.frames.push(this.#frameOf(one, view))
    }
    return part
  }

  /** The frame that makes the client reload. */
  resetFrame(reason: string): string {
    return frame('reset', `${this.#epoch}-${this.#last}`, { reason })
  }

  #frameOf(one: Numbered, view: CallerView): string {
    const { event, n } = one
    const { owner, type } = event
    const texts = view.owner !== undefined || showsTexts(view, owner ?? null)
    const name = texts ? 'texts' : 'plain'
    return (one[name] ??= frame(type, `${this.#epoch}-${n}`, event.data(texts)))
  }
}

function isFor({ type, owner }: LiveEvent, view: CallerView): boolean {
  if (view.owner === undefined || type === 'reset') return true
  return owner !== undefined && ownsFor({ id: view.owner }, owner)
}

const frame = (type: LiveEventType, id: string, data: unknown) =>
  `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`

const newEpoch = () => randomBytes(6).toString('hex')
