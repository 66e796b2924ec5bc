import { untilResting } from '@parley/engine/events/until-resting'
import { PaymentRequired } from '@parley/engine/payments/x402/payment-refused'
import type { ContextRecord, TaskRecord } from '@parley/engine/store/store'
import type { MessageTerms } from '@parley/engine/tasks/transitions'
import { newId } from '@parley/kit/database/new-id'
import { roughBytesOf } from '@parley/wire/codecs/lazy-part'
import { ParleyError } from '@parley/wire/errors'
import type { SendMessage } from '@parley/wire/model/call'
import { modesMatch } from '@parley/wire/model/mime'
import { isPaused, isResting } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import { continueTask, unlessUnpaid } from './continue-task.ts'
import { checkInlineWebhook, type InlineWebhook } from './inline-webhook.ts'
import { MessageClaims } from './message-claims.ts'
import { termsOf } from './message-terms.ts'
import type { Call, Run, Services } from './method.ts'
import { type AcceptedMessage, type NewTask, newRecord } from './new-record.ts'
import { isPaymentInProgress, payForTask, taskOfSameRequest } from './pay-first.ts'
import { readReferences } from './references.ts'
import { withHistory } from './tasks.ts'
import { requireFewUnpaid, unpaidRecord } from './unpaid-task.ts'

/**
 * `message/send` (spec/methods.md#messagesend) answers with the stored task in `submitted`. If the caller waits, the answer is
 * the task once it has ended or paused.
 */
export const sendMessage: Run<'sendMessage'> = async (services, call) => {
  const params = call.params()
  const {
    wait = false,
    waitMs = wait ? Number.POSITIVE_INFINITY : 0,
    historyLength,
  } = params.configuration ?? {}
  const { record, start, headers } = await acceptMessage(services, call, params)
  const isWaiting = waitMs > 0 && !isResting(record.status.state)
  // This subscribes before the task runs.
  const rested = isWaiting ? whenResting(services, call, { record, waitMs }) : undefined
  start()
  const task = (await rested) ?? record
  return { result: withHistory(task, historyLength), ...(headers !== undefined && { headers }) }
}

/**
 * Waits until the task has ended or paused, the time is up, the server stops or the caller disconnects, and returns the task
 * as it then is. Returns undefined if it cannot be read: the message is accepted, so the caller must receive the task's ID.
 */
async function whenResting(
  { store, engine, bus, sendWaitMaxMs, stopping }: Services,
  call: Call,
  { record: { id: taskId, owner, events }, waitMs }: { record: TaskRecord; waitMs: number },
): Promise<TaskRecord | undefined> {
  const { reserve } = call
  const signal = call.signal()
  const isAtRest = async () => {
    const outline = await store.outlineTask(taskId, owner, () => {}).catch(() => null)
    return outline === undefined || (outline !== null && isResting(outline.task.status.state))
  }
  const afterSequence = events.length
  const maxMs = Math.min(sendWaitMaxMs, waitMs)
  let committed: TaskRecord | undefined
  using _watch = engine.watch(taskId, (record) => (committed = record))
  await untilResting({ bus, taskId, afterSequence, isAtRest, signals: [signal, stopping], maxMs })
  if (signal.aborted) return undefined
  try {
    // A task that ran in this process need not be read.
    if (committed !== undefined && isResting(committed.status.state)) {
      reserve(roughBytesOf(committed))
      return committed
    }
    const outline = await store.outlineTask(taskId, owner, reserve)
    if (outline !== undefined) reserve(outline.bytes)
    return outline?.task
  } catch (error) {
    const log = call.log()
    log.debug({ err: error, task_id: taskId }, 'a waiting send is answered with the task as accepted')
    return undefined
  }
}

/**
 * Turns the params of `message/send` or `message/stream` into a stored task, which is either new or the continuation of
 * a paused one.
 */
export async function acceptMessage(
  services: Services,
  call: Call,
  params: SendMessage,
): Promise<AcceptedMessage> {
  const { message, configuration } = params
  const owner = call.caller.id
  const acceptedOutputModes = configuration?.acceptedOutputModes ?? []
  requireCommonMode(services, acceptedOutputModes)
  const webhook = await checkInlineWebhook(services, configuration)
  // The claims are disposed when this function returns, so every call below that uses them must be awaited.
  await using claims = new MessageClaims(services, call)
  const key = await claims.idempotencyKey(message.taskId)
  const taskId = key?.taskId ?? message.taskId
  const existing =
    taskId === undefined ? undefined : await services.store.findTask(taskId, owner, call.reserve)
  if (existing !== undefined && key !== undefined && isRepeat(existing, message.messageId, key.isRepeat))
    return await acceptedBefore(claims, existing)
  if (existing === undefined && params.continues === true && message.taskId !== undefined)
    throw new ParleyError('TaskNotFound', { data: { taskId: message.taskId } })
  // This follows the check for repeats, so that an accepted message stays accepted if a referenced task is removed later.
  const foreign = await readReferences(services, call, message.referenceTaskIds ?? [])
  const terms = termsOf(services, call, configuration?.deadlineMs)
  const continued = { claims, message, webhook, terms, pausesUnpaid: params.pausesUnpaid }
  if (existing !== undefined) return await continueTask(services, call, existing, continued)
  const task = { ...params, taskId: taskId ?? newId(), acceptedOutputModes, foreign }
  const hasNewId = taskId === undefined
  const created = await createTask(services, call, { claims, task, hasNewId, webhook, terms }).catch(
    async (error: unknown) => {
      if (key === undefined || !isPaymentInProgress(error)) throw error
      const same = await taskOfSameRequest(services, task.taskId, owner)
      if (same === undefined) throw error
      return acceptedBefore(claims, same)
    },
  )
  if (created !== undefined) return created
  // A concurrent request took the ID. If it was the same request, its task is the answer.
  const taken = await services.store.findTask(task.taskId, owner, call.reserve)
  if (taken === undefined) throw new ParleyError('TaskNotFound', { data: { taskId: task.taskId } })
  if (key !== undefined && holdsMessage(taken, message.messageId)) return await acceptedBefore(claims, taken)
  return await continueTask(services, call, taken, continued)
}

/** Returns undefined, without any claims, if the task ID is taken. */
async function createTask(
  services: Services,
  call: Call,
  parts: {
    claims: MessageClaims
    task: NewTask
    hasNewId: boolean
    webhook: InlineWebhook | undefined
    terms: MessageTerms
  },
): Promise<AcceptedMessage | undefined> {
  const { store, engine, runner, scheduler } = services
  const { claims, task, webhook, terms } = parts
  const owner = call.caller.id
  const at = timestamp()
  const contextId = task.message.contextId ?? newId()
  const context = await ownContext(services, task.message.contextId, owner)
  const isFirstOfContext = context === undefined
  const paid = await unlessUnpaid(
    task.pausesUnpaid === true,
    claims.payment(() => payForTask(services, call, task)),
  )
  const payment = paid instanceof PaymentRequired ? undefined : paid
  const signed = call.caller.signature !== undefined
  const contextName = task.message.contextName ?? context?.name
  const isPaid = services.payments !== undefined
  const names = { contextId, contextName }
  const record = newRecord({ owner, signed, isPaid, at, context: names, task, payment, terms })
  if (paid instanceof PaymentRequired)
    return await createUnpaid(services, { claims, webhook, record, required: paid })
  const place = await claims.queuePlace()
  const isLeased = payment === undefined && place.runs
  if (isLeased) Object.assign(record, { lease: runner.lease(), starts: 1 })
  await claims.signature()
  await claims.webhook(webhook, record, true)
  const generated = { task: parts.hasNewId, context: task.message.contextId === undefined }
  const created = await claims.commit(async () =>
    (await engine.create(record, generated)) ? record : undefined,
  )
  if (created === undefined) {
    const stored = payment && (await store.loadTask(record.id))
    if (payment && stored?.payments?.includes(payment.id)) claims.keepPayment()
    await claims.release()
    return undefined
  }
  const start = () => {
    if (payment === undefined) runner.remember(record, isFirstOfContext)
    if (payment?.held === true) {
      place.release()
      void payment.bound()
    } else scheduler.enqueue({ taskId: record.id, version: record.version, owner }, place)
  }
  return { record, start, ...(payment && { headers: payment.headers }) }
}

/** Returns undefined, without any claims, if the task ID is taken. */
async function createUnpaid(
  services: Services,
  parts: {
    claims: MessageClaims
    webhook: InlineWebhook | undefined
    record: TaskRecord
    required: PaymentRequired
  },
): Promise<AcceptedMessage | undefined> {
  const { claims, webhook, required } = parts
  await requireFewUnpaid(services, parts.record.owner)
  const record = unpaidRecord(parts.record, required)
  await claims.signature()
  await claims.webhook(webhook, record, true)
  const created = await claims.commit(async () =>
    (await services.engine.create(record)) ? record : undefined,
  )
  if (created === undefined) {
    await claims.release()
    return undefined
  }
  return { record, start: () => {}, headers: required.headers }
}

/** Answers a repeated request that has an Idempotency-Key with the task that the first request created. */
async function acceptedBefore(claims: MessageClaims, record: TaskRecord): Promise<AcceptedMessage> {
  await claims.signature()
  return { record, start: () => {} }
}

const holdsMessage = (record: TaskRecord, messageId: string) =>
  record.history.some((message) => message.messageId === messageId)

/**
 * Of two concurrent requests with one key, the first to claim the key may find the task that the second created. A message
 * with a new key to a paused task is not a repeat but an answer to that task.
 */
const isRepeat = (record: TaskRecord, messageId: string, isKnownKey: boolean) =>
  holdsMessage(record, messageId) && (isKnownKey || !isPaused(record.status.state))

/** A new context is created with its first task; the store refuses another owner's context. */
async function ownContext(
  { store }: Services,
  contextId: string | undefined,
  owner: string,
): Promise<ContextRecord | undefined> {
  return contextId === undefined ? undefined : store.findContext(contextId, owner)
}

/** @throws ParleyError ContentTypeNotSupported when the agent produces none of the accepted MIME types */
function requireCommonMode({ agent }: Services, accepted: readonly string[]): void {
  if (accepted.length === 0) return
  const supported = agent.skills.flatMap((skill) => skill.outputModes)
  if (accepted.some((mode) => supported.some((output) => modesMatch(mode, output)))) return
  throw new ParleyError('ContentTypeNotSupported', {
    data: { reason: 'accepted_output_modes', supported: [...new Set(supported)] },
  })
}
