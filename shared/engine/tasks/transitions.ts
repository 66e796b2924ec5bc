import { randomUUID } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import type { StoredEvent } from '@parley/wire/model/event'
import type { Artifact, Message, PausedState, TaskState, TaskStatus } from '@parley/wire/model/task'
import { isTerminal } from '@parley/wire/model/task'
import { type Timestamp, timestamp } from '@parley/wire/model/timestamp'
import type { TaskRecord } from '../store/store.ts'

/** Everything that can happen to a task. */
export type Change =
  /** A worker takes it up; again after a crash. */
  | { kind: 'pick-up'; lease: { holder: string; until: number } }
  /** The process stops in good order: the task is nobody's again, and this start does not count. */
  | { kind: 'release' }
  /** The caller's next message to a paused task. */
  | {
      kind: 'continue'
      message: Message
      signed: boolean
      payment?: { id: string; held: boolean } | undefined
    }
  /** The payment that it waited for is settled. */
  | { kind: 'paid' }
  | {
      kind: 'pause'
      state: PausedState
      message: Message
      dueAt: number
      workedMs: number
      asked?: TaskRecord['asked'] | undefined
    }
  | { kind: 'complete'; artifacts: Artifact[]; message: Message | undefined; workedMs: number }
  | { kind: 'fail'; message: Message }
  | { kind: 'reject'; message: Message }
  | { kind: 'cancel' }

type To = TaskState | 'its pause'

/** What may happen in which state, and where it leads (spec/tasks.md#transitions). Terminal states have no transitions. */
const table: Record<TaskState, Partial<Record<Change['kind'], To>>> = {
  submitted: {
    'pick-up': 'working',
    paid: 'submitted',
    // The payment that it waited for has failed.
    pause: 'its pause',
    cancel: 'canceled',
    fail: 'failed',
    reject: 'rejected',
  },
  working: {
    'pick-up': 'working',
    release: 'working',
    pause: 'its pause',
    complete: 'completed',
    fail: 'failed',
    reject: 'rejected',
    cancel: 'canceled',
  },
  'input-required': paused(),
  'auth-required': paused(),
  'payment-required': paused(),
  'negotiation-bid-submitted': paused(),
  completed: {},
  failed: {},
  canceled: {},
  rejected: {},
}

function paused(): Partial<Record<Change['kind'], To>> {
  return { continue: 'submitted', cancel: 'canceled', fail: 'failed', reject: 'rejected' }
}

/**
 * The record after the change, with the numbered events that tell of it: a pure computation, nothing is stored.
 * @throws ParleyError TaskNotCancelable or TaskImmutable on an ended task, UnsupportedOperation otherwise
 */
export function apply(record: TaskRecord, change: Change): TaskRecord {
  const from = record.status.state
  const to = table[from][change.kind]
  if (to === undefined) throw refusal(record, change)
  const at = timestamp()
  const next: TaskRecord = { ...record, updatedAt: at }
  const state = to === 'its pause' ? (change as { state: PausedState }).state : to
  if (state !== from) next.status = statusOf(state, at, change)
  if ('message' in change && change.message !== undefined)
    next.history = [...record.history, inHistory(change)]
  fillIn(next, change)
  next.events = [...record.events, ...eventsOf(next, from, at, change)]
  return next
}

function fillIn(next: TaskRecord, change: Change): void {
  delete next.dueAt
  if (change.kind === 'pick-up') {
    // A task made while a worker was free carries that worker's lease, and the start is counted with it.
    if (next.lease?.holder !== change.lease.holder) next.starts += 1
    next.lease = change.lease
    return
  }
  delete next.lease
  delete next.heldBy
  if (change.kind === 'continue') {
    next.starts = 0
    delete next.signed
    if (change.signed) next.signed = true
    if (change.payment !== undefined) next.payments = [...(next.payments ?? []), change.payment.id]
    if (change.payment?.held === true) next.heldBy = change.payment.id
  }
  // What is asked stands until it is paid.
  if (next.heldBy === undefined) delete next.asked
  if (change.kind === 'pause' && change.asked !== undefined) next.asked = change.asked
  if (change.kind === 'release') next.starts -= 1
  if (change.kind === 'pause') next.dueAt = change.dueAt
  if (change.kind === 'pause' || change.kind === 'complete') next.workedMs += change.workedMs
  if (change.kind === 'complete') next.artifacts = change.artifacts
}

function statusOf(state: TaskState, at: Timestamp, change: Change): TaskStatus {
  const told = change.kind === 'pause' || change.kind === 'fail' || change.kind === 'reject'
  return told ? { state, timestamp: at, message: change.message } : { state, timestamp: at }
}

/** A message of ours has the role `assistant` in the history and `agent` in a status (spec/tasks.md#history). */
function inHistory(change: Change & { message?: Message | undefined }): Message {
  const message = change.message as Message
  return change.kind === 'continue' ? message : { ...message, role: 'assistant' }
}

/** No event for `submitted`; none again when a task runs once more after a crash; artifacts before the end. */
function eventsOf(next: TaskRecord, from: TaskState, at: Timestamp, change: Change): StoredEvent[] {
  const { state } = next.status
  if (state === from || state === 'submitted') return []
  let sequence = next.events.length
  const envelope = () => ({ eventId: randomUUID(), sequence: ++sequence, timestamp: at })
  const made = change.kind === 'complete' ? change.artifacts : []
  const artifacts = made.map(
    ({ artifactId }): StoredEvent => ({ ...envelope(), kind: 'artifact-update', artifactId }),
  )
  const status = next.status
  return [...artifacts, { ...envelope(), kind: 'status-update', status, final: isTerminal(state) }]
}

function refusal(record: TaskRecord, change: Change): ParleyError {
  const { state } = record.status
  const data = { taskId: record.id, state }
  if (isTerminal(state))
    return new ParleyError(change.kind === 'cancel' ? 'TaskNotCancelable' : 'TaskImmutable', { data })
  return new ParleyError('UnsupportedOperation', {
    message: `Task is ${state}: wait until it asks for input or has ended`,
    data,
  })
}
