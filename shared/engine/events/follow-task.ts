import type { AnswerClaim } from '@parley/kit/process/answer-budget'
import { roughBytesOf } from '@parley/wire/codecs/lazy-part'
import type { TaskEvent } from '@parley/wire/model/event'
import { isResting } from '@parley/wire/model/task'
import type { BusMessage, EventBus, LiveItem } from './event-bus.ts'

export interface FollowOptions {
  bus: EventBus
  taskId: string
  /** Events with a higher number than this are told. */
  afterSequence: number
  /** What the store holds behind this number; undefined when the task is gone. */
  backfill: (afterSequence: number) => Promise<Backfill | undefined>
  signal: AbortSignal
  /** Items that may wait for a slow reader before it is cut off. Default 1,000. */
  bufferMax?: number
  /** Holds the bytes of those items; disposed when the following ends. Absent: they are not counted. */
  claim?: AnswerClaim
  /** How often the store is asked when the bus is silent (a lost hint is a delay of at most this). Default 2 s. */
  recheckMs?: number
}

export interface Backfill {
  events: TaskEvent[]
  /** True when nothing more is to come until a caller acts: ended or paused. */
  resting: boolean
}

/** The reader took longer than the events: it is cut off and may come back with the last number it saw. */
export class SlowReaderError extends Error {
  override readonly name = 'SlowReaderError'
}

/** The caller, or all callers, have too many bytes of answers unread: the reader may come back as well. */
export class UnreadBudgetExceeded extends Error {
  override readonly name = 'UnreadBudgetExceeded'
}

/**
 * Backfill → cut over → live: listens first, reads the store, then goes on with what arrives. No numbered event is
 * missed and none told twice. Ends after a terminal status or a pause that is the task's last event.
 * @throws SlowReaderError, TooMuchUnread
 */
export async function* followTask(options: FollowOptions): AsyncGenerator<LiveItem, void, void> {
  const inbox = new Inbox(options.bufferMax ?? 1000, options.claim)
  using _claim = options.claim
  using subscription = options.bus.subscribe(options.taskId, (item) => inbox.push(item))
  const wake = () => inbox.wake()
  options.signal.addEventListener('abort', wake)
  try {
    await subscription.ready
    yield* readOn(options, inbox)
  } finally {
    options.signal.removeEventListener('abort', wake)
  }
}

async function* readOn(options: FollowOptions, inbox: Inbox): AsyncGenerator<LiveItem, void, void> {
  let last = options.afterSequence
  let catchUp = true
  while (!options.signal.aborted) {
    if (catchUp) {
      const stored = await options.backfill(last)
      if (stored === undefined) return
      catchUp = yield* together(stored.events, inbox)
      last = stored.events.at(-1)?.sequence ?? last
      if (stored.resting || options.signal.aborted) return
      if (catchUp) continue
    }
    const item = await inbox.next(options.recheckMs ?? 2000)
    catchUp = item === undefined || item.kind === 'changed'
    if (item === undefined || item.kind === 'changed' || options.signal.aborted) continue
    if (item.kind === 'artifact-delta') {
      yield item
      continue
    }
    if (item.sequence <= last) {
      // A reader may ask for what comes after a number that the task will never reach.
      catchUp = item.kind === 'status-update' && isResting(item.status.state)
      continue
    }
    if (item.sequence > last + 1) {
      catchUp = true
      continue
    }
    last = item.sequence
    yield item
    if (item.kind === 'status-update' && isResting(item.status.state)) return
  }
}

/**
 * What the store holds, and before each event the deltas that were heard while it was read: a quick task is over by then.
 * @returns whether something was heard that the store may have learned since
 */
function* together(stored: readonly TaskEvent[], inbox: Inbox): Generator<LiveItem, boolean> {
  const last = stored.at(-1)?.sequence ?? 0
  const waiting = [...stored]
  let changed = false
  const isBefore = (item: BusMessage) =>
    waiting.length > 0 && (!('sequence' in item) || item.sequence <= last)
  for (const item of inbox.takeWhile(isBefore)) {
    if (item.kind === 'artifact-delta') yield item
    else if (item.kind === 'changed') changed = true
    else
      while (waiting[0] !== undefined && waiting[0].sequence <= item.sequence)
        yield waiting.shift() as TaskEvent
  }
  yield* waiting
  return changed
}

/** What arrived and was not read yet, bounded in number and, by its claim, in bytes. */
class Inbox {
  readonly #items: { item: BusMessage; bytes: number }[] = []
  readonly #max: number
  readonly #claim: AnswerClaim | undefined
  #bytes = 0
  #wake: () => void = () => {}
  #overflow: Error | undefined

  constructor(max: number, claim: AnswerClaim | undefined) {
    this.#max = max
    this.#claim = claim
  }

  push(item: BusMessage): void {
    if (this.#overflow !== undefined) return
    const bytes = roughBytesOf(item)
    const fits = this.#claim?.tryReserve(this.#bytes + bytes) ?? true
    // A numbered event can be read from the store when its turn comes.
    if (fits) this.#keep(item, bytes)
    else if ('sequence' in item) this.#keep({ kind: 'changed' }, 0)
    else this.#cutOff(new UnreadBudgetExceeded('no room for the next piece'))
    this.#wake()
  }

  #keep(item: BusMessage, bytes: number): void {
    if (this.#items.length >= this.#max)
      return this.#cutOff(new SlowReaderError('the reader is slower than the events'))
    this.#items.push({ item, bytes })
    this.#bytes += bytes
  }

  /** The reader gets no further events, and may never read the error. */
  #cutOff(error: Error): void {
    this.#overflow = error
    this.#items.length = 0
    this.#claim?.shrink(0)
  }

  #take(): BusMessage | undefined {
    const taken = this.#items.shift()
    if (taken === undefined) return undefined
    this.#bytes -= taken.bytes
    this.#claim?.shrink(this.#bytes)
    return taken.item
  }

  wake(): void {
    this.#wake()
  }

  /** What is there, as long as it is wanted; an overflow is left to `next`. */
  *takeWhile(isWanted: (item: BusMessage) => boolean): Generator<BusMessage> {
    while (this.#items[0] !== undefined && isWanted(this.#items[0].item)) yield this.#take() as BusMessage
  }

  /** The next item, or undefined after `waitMs` or a wake-up. */
  async next(waitMs: number): Promise<BusMessage | undefined> {
    if (this.#overflow !== undefined) throw this.#overflow
    if (this.#items.length === 0) await this.#arrival(waitMs)
    return this.#take()
  }

  #arrival(waitMs: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, waitMs)
    this.#wake = () => {
      clearTimeout(timer)
      this.#wake = () => {}
      resolve()
    }
    return promise
  }
}
