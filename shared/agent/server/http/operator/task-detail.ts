import type { PaymentRecord } from '@parley/engine/store/payment-store'
import type { TaskOutline, TaskRecord } from '@parley/engine/store/store'
import type { PushConfig } from '@parley/engine/store/webhook-store'
import { deliveryState } from '@parley/engine/webhooks/deliveries'
import type { Operator } from '@parley/kit/auth/operator-statement'
import type { agentTaskDetail } from '@parley/wire/codecs/answers/operator/tasks'
import { LazyPart } from '@parley/wire/codecs/lazy-part'
import { usageIn } from '@parley/wire/codecs/parley/metadata'
import { taskOut } from '@parley/wire/codecs/parley/task'
import type { StoredEvent } from '@parley/wire/model/event'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { JsonObject, Part } from '@parley/wire/model/task'
import type { z } from 'zod'
import type { Services } from '../../methods/method.ts'
import { handlerRuns } from './handler-runs.ts'
import { seesTexts, taskRow, textOf } from './task-row.ts'

type Detail = z.input<typeof agentTaskDetail>

/** The newest events are returned, and at most this many characters of their texts. */
const [eventsMax, eventTextMaxChars, allTextsMaxChars] = [1000, 2000, 500_000]
/** Larger tasks are returned without their large parts. */
const wholeTaskMaxBytes = 2 * 1024 * 1024
const linksMax = 1000

/** One task with everything that the agent knows about it (spec/operator.md#tasks). */
export async function taskDetail(
  services: Pick<Services, 'agent' | 'store' | 'registrations' | 'payments'>,
  outline: TaskOutline,
  operator: Operator,
): Promise<Detail> {
  const { store, registrations } = services
  const { task } = outline
  const shown = seesTexts(operator, task.owner)
  const [webhooks, payments, feedback] = await Promise.all([
    registrations?.list(task) ?? [],
    store.payments.listOfTask(task.id),
    store.findFeedback(task.id, task.owner),
  ])
  return {
    ...taskRow(services, task, operator),
    events: eventsOf(task.events, shown),
    runs: handlerRuns(task),
    message_count: task.history.length,
    children: (task.children ?? []).slice(0, linksMax).map(({ agent, taskId, detached, ended }) => ({
      ...(agent !== undefined && { agent }),
      ...(taskId !== undefined && { task_id: taskId }),
      ...(detached && { detached }),
      ...(ended && { ended }),
    })),
    references: task.referenceTaskIds.slice(0, linksMax),
    webhooks: webhooks.map((config) => webhookSummary(config, task, shown)),
    payments: payments.map(paymentSummary),
    usage: usageOf(task),
    feedback: feedback
      ? { rating: feedback.rating ?? null, text: shown ? feedback.feedback : null, at: feedback.at }
      : null,
    task: shown ? await wholeTask(outline) : null,
  }
}

function eventsOf(events: readonly StoredEvent[], shown: boolean): Detail['events'] {
  let left = allTextsMaxChars
  return events.slice(-eventsMax).map((event) => {
    const { sequence, timestamp: at, kind } = event
    if (event.kind === 'artifact-update')
      return { sequence, at, kind, ...(shown && { artifact_id: event.artifactId }) }
    const { state, message } = event.status
    const text = shown && message !== undefined && left > 0 ? textOf(message, eventTextMaxChars) : null
    left -= text?.length ?? 0
    return { sequence, at, kind, state, text }
  })
}

/** The tokens that handlers reported with the messages that ended their runs. */
function usageOf({ history }: TaskRecord): Detail['usage'] {
  const reported = history.flatMap(({ role, metadata }) => (role === 'user' ? [] : (usageIn(metadata) ?? [])))
  if (reported.length === 0) return null
  let [input, output] = [0, 0]
  for (const { inputTokens, outputTokens } of reported)
    [input, output] = [input + inputTokens, output + outputTokens]
  return { input_tokens: input, output_tokens: output, models: [] }
}

/** The address of a receiver may contain secrets, so that only its server is shown with the texts. */
export function webhookSummary(
  config: PushConfig,
  { events }: { events: { length: number } },
  shown: boolean,
): Detail['webhooks'][number] {
  const { id, url, dialect, settled, health } = config
  const { attempts, delivered, dropped, lastStatus, lastError, lastAttemptAt } = health
  return {
    config_id: id,
    url: shown ? url : `${URL.parse(url)?.origin ?? ''}/…`,
    dialect: dialect ?? null,
    state: deliveryState(config, events.length),
    settled,
    events: events.length,
    attempts,
    delivered,
    dropped,
    last_status: lastStatus ?? null,
    last_error: lastError ?? null,
    last_attempt_at: lastAttemptAt ?? null,
  }
}

function paymentSummary(payment: PaymentRecord): Detail['payments'][number] {
  const { terms } = payment
  return {
    payment_id: payment.id,
    state: payment.state,
    amount: terms.amount,
    asset: terms.asset,
    asset_name: terms.extra.name,
    network: terms.network,
    payer: payment.payer ?? null,
    tx_hash: payment.txHash ?? null,
    created_at: payment.createdAt,
    completed_at: payment.completedAt ?? null,
    ...(payment.sandbox && { sandbox: true }),
  }
}

/** The task in Parley's dialect. A text takes the place of a large part of a large task. */
async function wholeTask({ task, bytes }: TaskOutline): Promise<JsonObject | null> {
  const isWhole = bytes <= wholeTaskMaxBytes
  const partOf = async (part: Part | LazyPart): Promise<Part> => {
    if (!(part instanceof LazyPart)) return part
    if (isWhole) return part.load()
    const text = `(This part has about ${part.bytes} bytes, too many to show here. The caller of the task reads it with tasks/get.)`
    return { kind: 'text', text }
  }
  const withParts = async <T extends { parts: Part[] }>(one: T): Promise<T> => ({
    ...one,
    parts: await Promise.all(one.parts.map(partOf)),
  })
  const { message, ...status } = task.status
  const shown = {
    ...task,
    status: message === undefined ? status : { ...status, message: await withParts(message) },
    history: await Promise.all(task.history.map(withParts)),
    artifacts: await Promise.all(task.artifacts.map(withParts)),
  }
  return jsonObjectOf(JSON.stringify(taskOut(shown))) ?? null
}
