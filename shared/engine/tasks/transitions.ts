import { randomUUID } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import type { StoredEvent } from '@parley/wire/model/event'
import type {
  Artifact,
  Message,
  PausedState,
  PaymentReceipt,
  StatusPayment,
  TaskState,
  TaskStatus,
} from '@parley/wire/model/task'
import { isTerminal } from '@parley/wire/model/task'
import { type Timestamp, timestamp } from '@parley/wire/model/timestamp'
import type { ChildTask, TaskRecord } from '../store/store.ts'

/** Every change that can be made to a task. */
export type Change =
  /** A worker starts the task, for the first time or after a crash. */
  | { kind: 'pick-up'; lease: { holder: string; until: number } }
  /** The lease is released during a graceful shutdown, and this start does not count. */
  | { kind: 'release' }
  /** The caller's next message to a paused task. */
  | {
      kind: 'continue'
      /** Absent if the message only pays for the task. */
      message: Message | undefined
      signed: boolean
      paidBy?: AcceptedPayment | undefined
      /** The authority and the deadline of the new message, which replace those of the earlier one. */
      terms?: MessageTerms | undefined
    }
  /** The waiting task's payment is settled. */
  | { kind: 'paid'; receipt?: PaymentReceipt | undefined }
  /** A payment for the paused task was refused. The task still waits for one. */
  | { kind: 'refuse-payment'; payment: StatusPayment }
  | {
      kind: 'pause'
      state: PausedState
      message: Message
      dueAt: number
      workedMs: number
      asked?: TaskRecord['asked'] | undefined
      /** The task waits for the price of its message. The message of the pause is not added to the history. */
      unpaid?: true | undefined
      payment?: StatusPayment | undefined
    }
  | {
      kind: 'complete'
      artifacts: Artifact[]
      message: Message | undefined
      workedMs: number
      /** The message also becomes that of the status: as the whole answer, or together with the task. */
      reply?: 'message' | 'task' | undefined
    }
  | { kind: 'fail'; message: Message; payment?: StatusPayment | undefined }
  /** A message about the work so far. It is not part of the history. */
  | { kind: 'progress'; message: Message }
  /**
   * The calls of other agents. In an ended task, `dueAt` is when the children that have not ended are canceled; without it,
   * they need not be.
   */
  | { kind: 'children'; children: ChildTask[]; dueAt?: number }
  | { kind: 'reject'; message: Message; payment?: StatusPayment | undefined }
  /** The message says who canceled the task, if not its caller. */
  | { kind: 'cancel'; message?: Message }

/** A payment that was accepted for a message. Its receipt is absent while the settlement is uncertain. */
export interface AcceptedPayment {
  id: string
  held: boolean
  receipt?: PaymentReceipt | undefined
}

/** The fields of a task that each message of its caller sets. */
export type MessageTerms = Pick<TaskRecord, 'delegation' | 'authority' | 'deadlineAt' | 'trace'>

type Target = TaskState | 'paused'

/**
 * The changes that each state allows, and the resulting state (spec/tasks.md#transitions). Terminal states
 * have no transitions; `children` only records the cancellation of other tasks.
 */
const table: Record<TaskState, Partial<Record<Change['kind'], Target>>> = {
  submitted: {
    'pick-up': 'working',
    paid: 'submitted',
    // The waiting task's payment has failed.
    pause: 'paused',
    cancel: 'canceled',
    fail: 'failed',
    reject: 'rejected',
  },
  working: {
    'pick-up': 'working',
    release: 'working',
    children: 'working',
    progress: 'working',
    pause: 'paused',
    complete: 'completed',
    fail: 'failed',
    reject: 'rejected',
    cancel: 'canceled',
  },
  'input-required': paused(),
  'auth-required': paused(),
  'payment-required': { ...paused(), 'refuse-payment': 'payment-required' },
  'negotiation-bid-submitted': paused(),
  completed: { children: 'completed' },
  failed: { children: 'failed' },
  canceled: { children: 'canceled' },
  rejected: { children: 'rejected' },
}

function paused(): Partial<Record<Change['kind'], Target>> {
  return { continue: 'submitted', cancel: 'canceled', fail: 'failed', reject: 'rejected' }
}

/**
 * Returns the record after the change, with its numbered events. Pure: stores nothing.
 * @throws ParleyError TaskNotCancelable or TaskImmutable if the task is terminal, otherwise
 * UnsupportedOperation
 */
export function apply(record: TaskRecord, change: Change): TaskRecord {
  const from = record.status.state
  const target = table[from][change.kind]
  if (target === undefined) throw refusal(record, change)
  const at = timestamp()
  const next: TaskRecord = { ...record, updatedAt: at }
  const state = resultingState(target, change)
  if (state !== from || change.kind === 'progress') next.status = statusOf(state, at, change)
  const payment = paymentAfter(record, change)
  if (payment !== record.status.payment || state !== from) next.status = withPayment(next.status, payment)
  const message = messageForHistory(change)
  if (message !== undefined) next.history = [...record.history, message]
  applyFields(next, change, from)
  if (state !== from && isTerminal(state)) endChildren(next)
  next.events = [...record.events, ...eventsOf(next, from, at, change)]
  return next
}

function resultingState(target: Target, change: Change): TaskState {
  if (target !== 'paused') return target
  if (change.kind !== 'pause') throw new Error(`${change.kind} has no paused state`)
  return change.state
}

/** The payments of a task whose message was accepted with a payment. */
export function paymentOf(
  { held, receipt }: Pick<AcceptedPayment, 'held' | 'receipt'>,
  earlier: PaymentReceipt[] = [],
): StatusPayment {
  const receipts = receipt === undefined ? earlier : [...earlier, receipt]
  return withReceipts({ status: held ? 'payment-verified' : 'payment-completed' }, receipts)
}

/** The number of refused payments of which a task keeps receipts. It keeps those of all settled payments. */
const refusedMax = 10

/** Returns the payments after a change. Receipts are kept for the life of the task. */
function paymentAfter({ status }: TaskRecord, change: Change): StatusPayment | undefined {
  const { payment: before } = status
  const receipts = before?.receipts ?? []
  if (change.kind === 'continue' && change.paidBy !== undefined) return paymentOf(change.paidBy, receipts)
  if (change.kind === 'paid') return paymentOf({ held: false, receipt: change.receipt }, receipts)
  if ('payment' in change && change.payment !== undefined)
    return withReceipts(change.payment, bounded([...receipts, ...(change.payment.receipts ?? [])]))
  if (before === undefined || before.status !== 'payment-required') return before && withoutTerms(before)
  const isPaid = receipts.some(({ success }) => success)
  return isPaid ? withReceipts({ status: 'payment-completed' }, receipts) : undefined
}

function bounded(receipts: PaymentReceipt[]): PaymentReceipt[] {
  const surplus = receipts.filter(({ success }) => !success).slice(0, -refusedMax)
  return receipts.filter((receipt) => !surplus.includes(receipt))
}

function withoutTerms({ required: _required, ...payment }: StatusPayment): StatusPayment {
  return payment
}

function withReceipts(payment: StatusPayment, receipts: PaymentReceipt[]): StatusPayment {
  return receipts.length === 0 ? payment : { ...payment, receipts }
}

function withPayment(status: TaskStatus, payment: StatusPayment | undefined): TaskStatus {
  const { payment: _before, ...rest } = status
  return payment === undefined ? rest : { ...rest, payment }
}

function applyFields(next: TaskRecord, change: Change, from: TaskState): void {
  if (change.kind === 'refuse-payment' || change.kind === 'progress') return
  delete next.dueAt
  if (change.kind === 'pick-up') {
    // A task that was created with a lease has already counted this start.
    if (next.lease?.holder !== change.lease.holder) next.starts += 1
    if (from === 'working') noteRestart(next)
    next.lease = change.lease
    return
  }
  if (change.kind === 'children') return applyChildren(next, change)
  delete next.lease
  delete next.heldBy
  if (change.kind === 'continue') applyContinue(next, change)
  // The requested payment is kept until it is settled.
  if (next.heldBy === undefined) {
    delete next.asked
    delete next.unpaid
  }
  if (change.kind === 'release') {
    next.starts -= 1
    next.releasedAt = next.updatedAt
  }
  if (change.kind === 'pause') applyPause(next, change)
  if (change.kind === 'complete') applyComplete(next, change)
}

/** The newest restarts of which a task keeps the time. */
const restartsMax = 20

/** Records a start that changes no status, and so has no event. */
function noteRestart(next: TaskRecord): void {
  const after = next.releasedAt === undefined ? 'lost' : 'released'
  next.restarts = [...(next.restarts ?? []), { at: next.updatedAt, after } as const].slice(-restartsMax)
  delete next.releasedAt
}

type Of<Kind extends Change['kind']> = Extract<Change, { kind: Kind }>

function applyContinue(next: TaskRecord, { message, signed, paidBy, terms = {} }: Of<'continue'>): void {
  next.starts = 0
  if (message !== undefined) setSigned(next, signed)
  if (paidBy !== undefined) next.payments = [...(next.payments ?? []), paidBy.id]
  if (paidBy?.held === true) next.heldBy = paidBy.id
  applyTerms(next, terms)
}

function applyPause(next: TaskRecord, { unpaid, asked, dueAt, workedMs }: Of<'pause'>): void {
  if (unpaid === true) next.unpaid = true
  if (asked !== undefined) next.asked = asked
  next.dueAt = dueAt
  next.workedMs += workedMs
}

function applyComplete(next: TaskRecord, { artifacts, reply, workedMs }: Of<'complete'>): void {
  next.artifacts = artifacts
  next.workedMs += workedMs
  if (reply === 'message') next.answersByMessage = true
}

function setSigned(next: TaskRecord, signed: boolean): void {
  delete next.signed
  if (signed) next.signed = true
}

function applyTerms(next: TaskRecord, { delegation, authority, deadlineAt, trace }: MessageTerms): void {
  delete next.authority
  delete next.deadlineAt
  delete next.trace
  if (delegation !== undefined) next.delegation = delegation
  if (authority !== undefined) next.authority = authority
  if (deadlineAt !== undefined) next.deadlineAt = deadlineAt
  if (trace !== undefined) next.trace = trace
}

function applyChildren(next: TaskRecord, { children, dueAt }: Of<'children'>): void {
  next.children = children
  if (!isTerminal(next.status.state)) return
  if (dueAt === undefined) delete next.authority
  else next.dueAt = dueAt
}

/** The authority of an ended task is kept only for the cancellation of its children. */
function endChildren(next: TaskRecord): void {
  if (next.authority === undefined) return
  if (childrenToCancel(next).length === 0) delete next.authority
  else next.dueAt = Date.now()
}

/** The children that end with their parent. */
export function childrenToCancel({ children = [] }: TaskRecord): ChildTask[] {
  return children.filter(({ taskId, detached, ended }) => taskId !== undefined && !detached && !ended)
}

function statusOf(state: TaskState, at: Timestamp, change: Change): TaskStatus {
  const isWithout = change.kind === 'continue' || (change.kind === 'complete' && change.reply === undefined)
  const message = 'message' in change && !isWithout ? change.message : undefined
  return message === undefined ? { state, timestamp: at } : { state, timestamp: at, message }
}

/**
 * Returns the message for the history, if the change adds one. The agent's messages have the role `assistant` in the history
 * and `agent` in a status (spec/tasks.md#history).
 */
function messageForHistory(change: Change): Message | undefined {
  if (!('message' in change) || change.message === undefined || change.kind === 'progress') return undefined
  if (change.kind === 'continue') return change.message
  const isPriceOfMessage = change.kind === 'pause' && change.unpaid === true
  return isPriceOfMessage ? undefined : { ...change.message, role: 'assistant' }
}

/**
 * Returns the events of a change. There is none for `submitted` or for a task that starts again after a
 * crash, and artifacts come before the final status.
 */
function eventsOf(next: TaskRecord, from: TaskState, at: Timestamp, change: Change): StoredEvent[] {
  const { state } = next.status
  if (state === from && change.kind !== 'progress') return []
  if (state === 'submitted') return []
  let sequence = next.events.length
  const envelope = () => ({ eventId: randomUUID(), sequence: ++sequence, timestamp: at })
  const added = change.kind === 'complete' ? change.artifacts : []
  const artifacts = added.map(
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
