import { ownsFor } from '@parley/kit/auth/caller'
import type { agentTaskRow, taskRow } from '@parley/wire/codecs/answers/operator/tasks'
import { cleanLine } from '@parley/wire/model/clean-text'
import { timestampOfServer } from '@parley/wire/model/timestamp'
import type { z } from 'zod'
import { type CallerView, showsTexts } from '../view.ts'

export type AgentTaskRow = z.output<typeof agentTaskRow>
export type TaskRow = z.output<typeof taskRow>

const idMaxChars = 200
const textMaxChars = 300
const reasonMaxChars = 2000

/** Whether the view contains tasks of this owner: those of the caller, and those that agents created for it. */
export function isVisible({ owner }: Pick<CallerView, 'owner'>, of: string): boolean {
  return owner === undefined || ownsFor({ id: owner }, of)
}

/** Whether the view contains the texts of an entry of this owner. */
export function isShown(view: Pick<CallerView, 'owner' | 'texts' | 'caller'>, of: string): boolean {
  return showsTexts(view, of) || (view.owner !== undefined && isVisible(view, of))
}

/** The row of an agent, without what the view does not show. An agent may have sent any text. */
export function cleanRow<Row extends AgentTaskRow>(
  row: Row,
  view: Pick<CallerView, 'owner' | 'texts' | 'caller'>,
): Row {
  const shown = isShown(view, row.owner)
  const text = (value: string | null, max: number) => (value === null ? null : cleanLine(value, max))
  return {
    ...row,
    task_id: cleanLine(row.task_id, idMaxChars),
    context_id: cleanLine(row.context_id, idMaxChars),
    state: cleanLine(row.state, 40),
    skill: text(row.skill, idMaxChars),
    since: timestampOfServer(row.since),
    text: shown ? text(row.text, textMaxChars) : null,
    reason: shown ? text(row.reason, reasonMaxChars) : null,
    ...(row.payment && { payment: cleanMoney(row.payment) }),
    ...(row.expires_at && { expires_at: timestampOfServer(row.expires_at) }),
  }
}

function cleanMoney(money: NonNullable<AgentTaskRow['payment']>): NonNullable<AgentTaskRow['payment']> {
  const { asset, asset_name: name, network, amount } = money
  return {
    ...money,
    asset: cleanLine(asset, idMaxChars),
    asset_name: cleanLine(name, idMaxChars),
    network: cleanLine(network, idMaxChars),
    amount: cleanLine(amount, idMaxChars),
  }
}
