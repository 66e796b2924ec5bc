import { defaultDialect } from '@parley/wire/codecs/dialects'
import { isTerminal } from '@parley/wire/model/task'
import type { TaskRecord } from '../store/store.ts'
import { eventsBetween } from '../tasks/task-events.ts'

/** One event as its bytes, which every attempt sends. */
export interface PreparedEvent {
  eventId: string
  sequence: number
  body: Buffer
  /** When it was written, in milliseconds since 1970. */
  at: number
  /** Nothing comes after it. */
  last: boolean
}

/** Made in one go from one read of the record: so many, and no further one once they have so many bytes. */
const [batchMax, batchMaxBytes] = [16, 256 * 1024]

/** The events after the number, the next ones first; none when there are no more yet. */
export function prepareEvents(record: TaskRecord, after: number): PreparedEvent[] {
  const ended = isTerminal(record.status.state)
  const prepared: PreparedEvent[] = []
  let bytes = 0
  for (let sequence = after; sequence < record.events.length && prepared.length < batchMax; sequence += 1) {
    if (bytes >= batchMaxBytes) break
    const [event] = eventsBetween(record, sequence, sequence + 1)
    if (event === undefined) break
    const body = Buffer.from(defaultDialect.writeWebhook(event))
    bytes += body.byteLength
    const last = ended && event.sequence === record.events.length
    prepared.push({
      eventId: event.eventId,
      sequence: event.sequence,
      body,
      at: Date.parse(event.timestamp),
      last,
    })
  }
  return prepared
}
