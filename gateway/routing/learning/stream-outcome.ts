import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'
import type { ResponseObserver } from '../forwarding/exchange.ts'
import type { Route } from '../store/routing-store.ts'
import type { FeedbackRecorder } from './feedback.ts'
import { type TaskOutcome, taskOutcomeOf } from './task-outcome.ts'

const lastMaxBytes = 64 * 1024

/** The first event of a stream. */
export function firstEventOf(bytes: Buffer): unknown {
  const data = /(?:^|\n)data: ?([^\n]*)/.exec(bytes.toString('utf8'))?.[1]
  return data === undefined ? undefined : jsonOf(data)
}

/** Keeps the last bytes of a stream and records the outcome of its task. */
export class StreamOutcomeObserver implements ResponseObserver {
  readonly #feedback: FeedbackRecorder
  readonly #route: Route
  #last: Buffer = Buffer.alloc(0)

  constructor(feedback: FeedbackRecorder, route: Route) {
    this.#feedback = feedback
    this.#route = route
  }

  chunk(chunk: Buffer): void {
    this.#last = Buffer.concat([this.#last, chunk]).subarray(-lastMaxBytes)
  }

  end(): void {
    const outcome = endIn(this.#last.toString('utf8'))
    if (outcome !== undefined) this.#feedback.recordOutcome(this.#route, outcome)
  }
}

/** The outcome in the last event; undefined for a paused or cancelled task and for a broken stream. */
function endIn(text: string): TaskOutcome | undefined {
  const at = text.lastIndexOf('\ndata:')
  const event = at === -1 ? undefined : jsonOf(text.slice(at + 6).split('\n', 1)[0] ?? '')
  return isObject(event) && event['final'] === true ? taskOutcomeOf(event) : undefined
}
