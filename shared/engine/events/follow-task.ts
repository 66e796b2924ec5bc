import type { AnswerClaim } from '@parley/kit/process/answer-budget'
import { roughBytesOf } from '@parley/wire/codecs/lazy-part'
import type { TaskEvent } from '@parley/wire/model/event'
import { isResting } from '@parley/wire/model/task'
import type { BusMessage, EventBus, LiveItem } from './event-bus.ts'

export interface FollowOptions {
  bus: EventBus
  taskId: string
  /** Only events after this sequence number are returned. */
  afterSequence: number
  /** Reads the stored events after a sequence number. Returns undefined if the task was removed. */
  backfill: (afterSequence: number) => Promise<Backfill | undefined>
  signal: AbortSignal
  /** Maximum number of buffered items before a slow reader is cut off. Default 1,000. */
  bufferMax?: number
  /** Reserves memory for the buffered items and is disposed at the end. If absent, their bytes are not limited. */
  claim?: AnswerClaim
  /**
   * How often the store is read when the bus delivers no events. This bounds the delay caused by a lost
   * notification. Default 2 s.
   */
  recheckMs?: number
}

export interface Backfill {
  events: TaskEvent[]
  /** Whether the task has ended or is paused, in which case no events follow until a caller acts. */
  resting: boolean
}

/** The reader is slower than the events and is cut off. It can reconnect with its last sequence number. */
export class SlowReaderError extends Error {
  override readonly name = 'SlowReaderError'
}

/** The unread bytes of this caller or of all callers exceed the limit. The reader can reconnect. */
export class UnreadBudgetExceeded extends Error {
  override readonly name = 'UnreadBudgetExceeded'
}

/**
 * Subscribes, reads the stored events, then continues with live events. Returns every numbered event exactly
 * once. Ends after a terminal status, or after a pause that is the task's last event.
 * @throws SlowReaderError, UnreadBudgetExceeded
 */
export async function* followTask(options: FollowOptions): AsyncGenerator<LiveItem, void, void> {
  const inbox = new Inbox(options.bufferMax ?? 1000, options.claim)
  using _claim = options.claim
  using subscription = options.bus.subscribe(options.taskId, (item) => inbox.push(item))
  const wake = () => inbox.wake()
  options.signal.addEventListener('abort', wake)
  try {
    await subscription.ready
    yield* readEvents(options, inbox)
  } finally {
    options.signal.removeEventListener('abort', wake)
  }
}

async function* readEvents(options: FollowOptions, inbox: Inbox): AsyncGenerator<LiveItem, void, void> {
  let last = options.afterSequence
  let catchUp = true
  while (!options.signal.aborted) {
    if (catchUp) {
      const stored = await options.backfill(last)
      if (stored === undefined) return
      catchUp = yield* mergeStored(stored.events, inbox)
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
      // A reader may request events after a number that the task will never reach.
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
 * Yields the stored events. Deltas that arrived during the read come before each event, because a short task
 * may already have ended.
 * @returns whether a change notice arrived that is newer than the stored events
 */
function* mergeStored(stored: readonly TaskEvent[], inbox: Inbox): Generator<LiveItem, boolean> {
  const last = stored.at(-1)?.sequence ?? 0
  const waiting = [...stored]
  let changed = false
  const isBefore = (item: BusMessage) =>
    waiting.length > 0 && (!('sequence' in item) || item.sequence <= last)
  for (const item of inbox.takeWhile(isBefore)) {
    if (item.kind === 'artifact-delta') yield item
    else if (item.kind === 'changed') changed = true
    else
      for (let next = waiting[0]; next !== undefined && next.sequence <= item.sequence; next = waiting[0]) {
        waiting.shift()
        yield next
      }
  }
  yield* waiting
  return changed
}

/** Received items that have not been read yet. Their number is limited, and the claim limits their bytes. */
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
    // A numbered event can be read from the store later.
    if (fits) this.#add(item, bytes)
    else if ('sequence' in item) this.#add({ kind: 'changed' }, 0)
    else this.#overflowWith(new UnreadBudgetExceeded('the budget for unread bytes is exhausted'))
    this.#wake()
  }

  #add(item: BusMessage, bytes: number): void {
    if (this.#items.length >= this.#max)
      return this.#overflowWith(new SlowReaderError('the reader is slower than the events'))
    this.#items.push({ item, bytes })
    this.#bytes += bytes
  }

  /** Discards the buffer. The error is thrown when the reader continues. */
  #overflowWith(error: Error): void {
    this.#overflow = error
    this.#items.length = 0
    this.#claim?.shrink(0)
  }

  #take(): BusMessage | undefined {
    const entry = this.#items.shift()
    if (entry === undefined) return undefined
    this.#bytes -= entry.bytes
    this.#claim?.shrink(this.#bytes)
    return entry.item
  }

  wake(): void {
    this.#wake()
  }

  /** Takes items as long as they match. After an overflow, `next` throws the error. */
  *takeWhile(matches: (item: BusMessage) => boolean): Generator<BusMessage> {
    for (let first = this.#items[0]; first !== undefined && matches(first.item); first = this.#items[0]) {
      this.#take()
      yield first.item
    }
  }

  /** Returns the next item, or undefined after `waitMs` or a wake-up. */
  async next(waitMs: number): Promise<BusMessage | undefined> {
    if (this.#overflow !== undefined) throw this.#overflow
    if (this.#items.length === 0) await this.#waitForItem(waitMs)
    return this.#take()
  }

  #waitForItem(waitMs: number): Promise<void> {
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
