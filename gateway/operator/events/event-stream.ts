import { Readable } from 'node:stream'
import type { CallerView } from '../view.ts'
import type { LiveEventType } from './event-ring.ts'
import type { LiveEvents } from './live-events.ts'

export interface EventStreamOptions {
  live: Pick<LiveEvents, 'ring' | 'subscribe'>
  view: CallerView
  wanted: ReadonlySet<LiveEventType>
  /** The ID of the last event that the client has received. */
  lastId: string | undefined
}

const heartbeatMs = 15_000
/** Bytes that wait for a slow client. Further events stay in the ring, which drops the oldest. */
const waitingMaxBytes = 256 * 1024

/** The frames of one client. A client that is too slow for the ring receives `reset` and continues with the newest event. */
export class EventStream extends Readable {
  readonly #options: EventStreamOptions
  readonly #heartbeat: NodeJS.Timeout
  readonly #unsubscribe: () => void
  #position: number
  #isFull = false

  constructor(options: EventStreamOptions) {
    super({ highWaterMark: waitingMaxBytes })
    this.#options = options
    const { live, lastId } = options
    const known = lastId === undefined ? live.ring.last : live.ring.positionOf(lastId)
    this.#position = known ?? live.ring.last
    this.push(
      known === undefined ? `retry: 2000\n\n${live.ring.resetFrame('unknown_id')}` : 'retry: 2000\n\n',
    )
    this.#unsubscribe = live.subscribe(() => this.#send())
    this.#heartbeat = setInterval(() => this.#isFull || this.push(': keep-alive\n\n'), heartbeatMs).unref()
    this.#send()
  }

  override _read(): void {
    this.#isFull = false
    this.#send()
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    clearInterval(this.#heartbeat)
    this.#unsubscribe()
    callback(error)
  }

  /** Ends the stream after a comment for people who read it. */
  end(comment: string): void {
    if (this.destroyed || this.readableEnded) return
    clearInterval(this.#heartbeat)
    this.#unsubscribe()
    this.#isFull = true
    this.push(`: ${comment}\n\n`)
    this.push(null)
  }

  #send(): void {
    const { live, view, wanted } = this.#options
    while (!this.#isFull && this.#position !== live.ring.last) {
      const { frames, position, isCut } = live.ring.read(this.#position, view, wanted)
      this.#position = position
      const text = isCut ? live.ring.resetFrame('too_slow') : frames.join('')
      if (text !== '') this.#isFull = !this.push(text)
    }
  }
}
