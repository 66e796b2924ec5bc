import type { PaymentTerms } from '@parley/engine/store/payment-store'
import type { TaskRecord } from '@parley/engine/store/store'
import { ownsFor, subjectOf } from '@parley/kit/auth/caller'
import type { Operator } from '@parley/kit/auth/operator-statement'
import { traceIdOf } from '@parley/kit/telemetry/trace-context'
import type { agentTaskRow } from '@parley/wire/codecs/answers/operator/tasks'
import { LazyPart } from '@parley/wire/codecs/lazy-part'
import { skillIdIn } from '@parley/wire/codecs/parley/metadata'
import { clipped } from '@parley/wire/model/clean-text'
import { isTerminal, type Message, type Part, pausedStates } from '@parley/wire/model/task'
import { timestampOf } from '@parley/wire/model/timestamp'
import type { z } from 'zod'
import type { Services } from '../../methods/method.ts'
import { dueTerms } from '../../runner/payment-prompt.ts'
import { handlerRuns } from './handler-runs.ts'

type Row = z.input<typeof agentTaskRow>

const textMaxChars = 300
const reasonMaxChars = 2000
/** Other values in the metadata of a message are texts of the caller. */
const skillId = /^[\w.:-]{1,128}$/

/** Whether the person may see the entries of the owner, which include those that agents created for it. */
export function seesOwner({ owner }: Operator, of: string): boolean {
  return owner === undefined || ownsFor({ id: owner }, of)
}

/** Whether the texts of the owner's entries may leave the agent. A person always sees their own texts. */
export function seesTexts({ client, owner, texts }: Operator, of: string): boolean {
  return texts || ownsFor({ id: owner ?? client }, of)
}

/** A task as a row of a list (spec/operator.md#tasks). */
export function taskRow(
  services: Pick<Services, 'agent' | 'payments'>,
  task: TaskRecord,
  operator: Operator,
): Row {
  const { id, contextId, owner, status, history, delegation, parent, deadlineAt } = task
  const shown = seesTexts(operator, owner)
  const [first] = history
  const skill = skillIdIn(first?.metadata)
  return {
    task_id: id,
    context_id: contextId,
    owner: subjectOf(owner),
    ...(delegation && { delegation }),
    state: status.state,
    created_at: task.createdAt,
    updated_at: task.updatedAt,
    since: status.timestamp,
    started_at: handlerRuns(task)[0]?.started_at ?? null,
    starts: task.starts,
    worked_ms: Math.round(task.workedMs),
    deadline_at: deadlineAt === undefined ? null : timestampOf(deadlineAt * 1000),
    skill: typeof skill === 'string' && skillId.test(skill) ? skill : null,
    text: shown && first !== undefined ? textOf(first, textMaxChars) : null,
    reason: shown && status.message !== undefined ? textOf(status.message, reasonMaxChars) : null,
    parent: parent === undefined ? null : { agent: parent.agent, task_id: parent.taskId },
    trace_id: traceIdOf(task.trace) ?? null,
    ...pauseOf(services, task),
  }
}

/** The payment that a paused task waits for, and when the pause ends. */
function pauseOf(
  { agent, payments }: Pick<Services, 'agent' | 'payments'>,
  task: TaskRecord,
): Pick<Row, 'payment' | 'expires_at'> {
  const { status, dueAt } = task
  if (!pausedStates.some((paused) => paused === status.state)) return {}
  const isUnpaid = status.state === 'payment-required' && payments !== undefined
  const [terms] = isUnpaid ? dueTerms({ agent, payments }, task) : []
  return {
    payment: terms === undefined ? null : moneyOf(terms, payments?.sandbox),
    expires_at: dueAt === undefined ? null : timestampOf(dueAt * 1000),
  }
}

function moneyOf(
  { asset, extra, network, amount }: PaymentTerms,
  sandbox = false,
): NonNullable<Row['payment']> {
  return { asset, asset_name: extra.name, network, amount, ...(sandbox && { sandbox: true }) }
}

/** The texts of a message, joined and truncated. Large parts, which are still in the store, are left out. */
export function textOf({ parts }: Message, maxChars: number): string | null {
  const all: readonly (Part | LazyPart)[] = parts
  const texts = all.flatMap((part) => (part.kind === 'text' ? part.text.slice(0, 4 * maxChars) : []))
  return texts.length === 0 ? null : clipped(texts.join('\n').toWellFormed(), maxChars)
}

export const isOpen = ({ status }: TaskRecord) => !isTerminal(status.state)
