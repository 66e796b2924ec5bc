import type { Codec } from '@parley/wire/codecs/codec'
import { jsonOf } from '@parley/wire/model/json-text'
import type { ResponseObserver } from '../forwarding/exchange.ts'
import type { Route } from '../store/routing-store.ts'
import type { FeedbackRecorder } from './feedback.ts'

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
  readonly #codec: Pick<Codec, 'readStreamEnd'>
  #last: Buffer = Buffer.alloc(0)

  constructor(feedback: FeedbackRecorder, route: Route, codec: Pick<Codec, 'readStreamEnd'>) {
    this.#feedback = feedback
    this.#route = route
    this.#codec = codec
  }

  chunk(chunk: Buffer): undefined {
    this.#last = Buffer.concat([this.#last, chunk]).subarray(-lastMaxBytes)
  }

  end(): undefined {
    const outcome = this.#codec.readStreamEnd(lastEventOf(this.#last.toString('utf8')))
    if (outcome !== undefined) this.#feedback.recordOutcome(this.#route, outcome)
  }
}

function lastEventOf(text: string): unknown {
  const at = text.lastIndexOf('\ndata:')
  return at === -1 ? undefined : jsonOf(text.slice(at + 6).split('\n', 1)[0] ?? '')
}
