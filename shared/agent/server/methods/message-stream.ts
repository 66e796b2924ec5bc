import type { LiveItem } from '@parley/engine/events/event-bus'
import { type Backfill, followTask } from '@parley/engine/events/follow-task'
import type { TaskRecord } from '@parley/engine/store/store'
import { eventsAfter, eventsBetween } from '@parley/engine/tasks/task-events'
import { roughBytesOf } from '@parley/wire/codecs/lazy-part'
import { ParleyError } from '@parley/wire/errors'
import type { PresentTask, StreamItem } from '@parley/wire/model/event'
import { isResting, isTerminal } from '@parley/wire/model/task'
import { acceptMessage } from './message-send.ts'
import type { Call, Run, Services } from './method.ts'
import { requireDelegatedOutline, withHistory } from './tasks.ts'

/** Streams the current status of the task, then its events and deltas until it ends or pauses (spec/streaming.md#frames). */
export const streamMessage: Run<'streamMessage'> = async (services, call) => {
  requireStreaming(services)
  const params = call.params()
  const { record, start, headers } = await acceptMessage(services, call, params)
  const live = follow(services, call, record, record.events.length)
  // This starts the generator, so that it subscribes before the task runs.
  const first = live.next()
  start()
  const shown = withHistory(record, params.configuration?.historyLength)
  const items = chain(presentTask(shown), first, live)
  return { items, ...(headers !== undefined && { headers }) }
}

/**
 * Continues after `after_sequence` or `Last-Event-ID` (spec/streaming.md#catch-up). Without them, streams the current status and
 * later events.
 */
export const resubscribe: Run<'resubscribe'> = async (services, call) => {
  requireStreaming(services)
  const params = call.params()
  const record = await requireDelegatedOutline(services, call, params.taskId)
  if (params.requireOpen === true && isTerminal(record.status.state)) {
    throw new ParleyError('UnsupportedOperation', {
      message: 'The task has ended: read it instead of following it',
      data: { taskId: params.taskId, state: record.status.state },
    })
  }
  const after = params.afterSequence ?? lastEventId(call)
  if (after !== undefined) {
    const [first] = eventsBetween(record, after, after + 1)
    if (first !== undefined) call.reserve(roughBytesOf(first))
    const live = follow(services, call, record, after)
    return { items: chain(undefined, live.next(), live) }
  }
  // A client of A2A 1.0 follows a paused task until it ends or pauses again.
  const pausedAt = params.requireOpen === true ? record.events.length : undefined
  const live = follow(services, call, record, record.events.length, pausedAt)
  return { items: chain(presentTask(record), live.next(), live) }
}

function requireStreaming({ agent }: Services): void {
  if (!agent.capabilities.streaming) {
    throw new ParleyError('UnsupportedOperation', {
      message: 'This agent does not support streaming',
      data: { reason: 'streaming' },
    })
  }
}

function lastEventId(call: Call): number | undefined {
  const given = call.headers['last-event-id']
  return typeof given === 'string' && /^\d{1,9}$/.test(given) ? Number(given) : undefined
}

/** Returns the current status as the event that set it; `submitted` has no event. */
function presentTask(record: TaskRecord): PresentTask {
  const sequence = record.events.length
  const last = sequence > 0 ? eventsAfter(record, sequence - 1)[0] : undefined
  const isPresent = last?.kind === 'status-update' && last.status.state === record.status.state
  return { kind: 'present-task', task: record, sequence, event: isPresent ? last : undefined }
}

/**
 * Keeps no reference to the record, because a stream may last a long time.
 * @param pausedAt the number of events of a pause at which the stream does not end
 */
function follow(
  services: Services,
  { signal, openClaim }: Call,
  { id: taskId, owner }: TaskRecord,
  afterSequence: number,
  pausedAt?: number,
) {
  const backfill = async (after: number): Promise<Backfill | undefined> => {
    // Memory for each event is reserved when its frame is written.
    const now = await services.store.outlineTask(taskId, owner, () => {})
    if (now === undefined) return undefined
    const { events, status } = now.task
    const resting = isResting(status.state) && (isTerminal(status.state) || events.length !== pausedAt)
    return { events: eventsAfter(now.task, after), resting }
  }
  return followTask({
    bus: services.bus,
    taskId,
    afterSequence,
    backfill,
    signal: signal(),
    claim: openClaim(),
  })
}

type Live = AsyncGenerator<LiveItem, void, void>

async function* chain(
  present: PresentTask | undefined,
  first: Promise<IteratorResult<LiveItem, void>>,
  live: Live,
): AsyncGenerator<StreamItem> {
  let before = present
  try {
    if (before !== undefined) yield before
    // This releases the reference to the task, because a stream may last a long time.
    before = undefined
    for (let step = await first; step.done !== true; step = await live.next()) yield step.value
  } finally {
    // The reader may disconnect before the first event.
    first.catch(() => {})
    await live.return()
  }
}
