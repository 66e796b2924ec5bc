import type { Published } from '@parley/engine/events/event-bus'
import { type Backfill, followTask } from '@parley/engine/events/follow-task'
import type { TaskRecord } from '@parley/engine/store/store'
import { eventsAfter, eventsBetween } from '@parley/engine/tasks/task-events'
import { roughBytesOf } from '@parley/wire/codecs/parley/lazy-part'
import { messageSend, parseParams, taskResubscribe } from '@parley/wire/codecs/parley/params'
import { deltaOut, eventOut, presentStatusOut } from '@parley/wire/codecs/parley/wire-out'
import { ParleyError } from '@parley/wire/errors'
import { isResting, isTerminal } from '@parley/wire/model/task'
import { acceptMessage } from './message-send.ts'
import type { Answer, Call, Frame, Services } from './method.ts'
import { requireOutline } from './tasks.ts'

/** Streams the present status of the task, then its events and deltas until it ends or pauses (spec/streaming.md#frames). */
export async function streamMessage(services: Services, call: Call): Promise<Answer> {
  requireStreaming(services)
  const params = parseParams(messageSend, call.params)
  const { record, start, headers } = await acceptMessage(services, call, params)
  const live = follow(services, call, record, record.events.length)
  // The generator runs to its first wait here, so that it listens before the task begins.
  const first = live.next()
  start()
  const frames = chain([presentFrame(record)], first, live)
  return { frames, ...(headers !== undefined && { headers }) }
}

/** `after_sequence` or `Last-Event-ID`: what came after that number; else the present status and what comes after it. */
export async function resubscribe(services: Services, call: Call): Promise<Answer> {
  requireStreaming(services)
  const params = parseParams(taskResubscribe, call.params)
  const record = await requireOutline(services, call, params.taskId)
  const after = params.afterSequence ?? lastEventId(call)
  if (after !== undefined) {
    const [first] = eventsBetween(record, after, after + 1)
    if (first !== undefined) call.reserve(roughBytesOf(first))
    const live = follow(services, call, record, after)
    return { frames: chain([], live.next(), live) }
  }
  const live = follow(services, call, record, record.events.length)
  return { frames: chain([presentFrame(record)], live.next(), live) }
}

function requireStreaming({ agent }: Services): void {
  if (!agent.capabilities.streaming) {
    throw new ParleyError('UnsupportedOperation', {
      message: 'This agent does not stream',
      data: { reason: 'streaming' },
    })
  }
}

function lastEventId(call: Call): number | undefined {
  const given = call.headers['last-event-id']
  return typeof given === 'string' && /^\d{1,9}$/.test(given) ? Number(given) : undefined
}

/** A status that has an event is told as that event; `submitted` has none. */
function presentFrame(record: TaskRecord): Frame {
  const sequence = record.events.length
  const last = eventsAfter(record, sequence - 1)[0]
  if (sequence > 0 && last?.kind === 'status-update' && last.status.state === record.status.state) {
    return { id: sequence, data: eventOut(last) }
  }
  return { id: sequence, data: presentStatusOut(record, sequence, isTerminal(record.status.state)) }
}

/** Holds nothing of the record: a stream may last for long. */
function follow(
  services: Services,
  { signal, openClaim }: Call,
  { id: taskId, owner }: TaskRecord,
  afterSequence: number,
) {
  const backfill = async (after: number): Promise<Backfill | undefined> => {
    // Each event is counted when its frame is made.
    const now = await services.store.outlineTask(taskId, owner, () => {})
    return now && { events: eventsAfter(now.task, after), resting: isResting(now.task.status.state) }
  }
  return followTask({ bus: services.bus, taskId, afterSequence, backfill, signal, claim: openClaim() })
}

type Live = AsyncGenerator<Published, void, void>

async function* chain(
  before: Frame[],
  first: Promise<IteratorResult<Published, void>>,
  live: Live,
): AsyncGenerator<Frame> {
  /** Artifacts that the reader has begun to receive. */
  const begun = new Set<string>()
  try {
    yield* before
    for (let step = await first; step.done !== true; step = await live.next())
      yield frameOf(step.value, begun)
  } finally {
    // The reader may leave before the first event is there.
    first.catch(() => {})
    await live.return()
  }
}

function frameOf(item: Published, begun: Set<string>): Frame {
  if (item.kind !== 'artifact-delta') return { id: item.sequence, data: eventOut(item) }
  const { artifactId } = item.artifact
  const isFirst = !begun.has(artifactId)
  begun.add(artifactId)
  return { data: deltaOut(item, isFirst) }
}
