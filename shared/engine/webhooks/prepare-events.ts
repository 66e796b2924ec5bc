import type { TraceContext } from '@parley/kit/telemetry/trace-context'
import { dialectNamed } from '@parley/wire/codecs/dialects'
import { isTerminal } from '@parley/wire/model/task'
import type { TaskRecord } from '../store/store.ts'
import { eventsBetween } from '../tasks/task-events.ts'

/** A serialized event. Every attempt sends the same bytes. */
export interface PreparedEvent {
  eventId: string
  sequence: number
  body: Buffer
  /** The time of the event in milliseconds since 1970. */
  at: number
  /** Whether no further event follows. */
  last: boolean
  /** The trace of the task. */
  trace: TraceContext | undefined
}

/** The number of events per read of a task, and the size beyond which no further event is added. */
const [batchMax, batchMaxBytes] = [16, 256 * 1024]

/** Serializes the next events after a sequence number in a dialect. Returns an empty list if there are none yet. */
export function prepareEvents(
  record: TaskRecord,
  after: number,
  dialect: string | undefined,
): PreparedEvent[] {
  const codec = dialectNamed(dialect)
  const ended = isTerminal(record.status.state)
  const prepared: PreparedEvent[] = []
  let bytes = 0
  for (let sequence = after; sequence < record.events.length && prepared.length < batchMax; sequence += 1) {
    if (bytes >= batchMaxBytes) break
    const [event] = eventsBetween(record, sequence, sequence + 1)
    if (event === undefined) break
    const body = Buffer.from(codec.writeWebhook(event, record))
    bytes += body.byteLength
    const last = ended && event.sequence === record.events.length
    prepared.push({
      eventId: event.eventId,
      sequence: event.sequence,
      body,
      at: Date.parse(event.timestamp),
      last,
      trace: record.trace,
    })
  }
  return prepared
}
