import type { taskDetail } from '@parley/wire/codecs/answers/operator/tasks'
import type { z } from 'zod'
import { oneLine, slugMax } from './printable.ts'
import { table } from './table.ts'

export type OperatorTask = z.output<typeof taskDetail>
type Chained = Pick<
  OperatorTask['chain'][number],
  | 'agent'
  | 'task_id'
  | 'parent_id'
  | 'state'
  | 'created_at'
  | 'updated_at'
  | 'events'
  | 'runs'
  | 'webhooks'
  | 'payments'
>

interface Moment {
  at: number
  agent: string
  what: string
}

const momentsMax = 200

/** What an operator sees of one task: its times, its chain, its events on one time axis, webhooks and payments. */
export function axisOf(task: OperatorTask): string {
  const all: Chained[] =
    task.chain.length > 0 ? task.chain : [{ ...task, parent_id: task.parent?.task_id ?? null }]
  return [headOf(task), chainOf(task, all), momentsOf(task, all), deliveriesOf(task)]
    .filter((part) => part !== '')
    .join('\n')
}

function headOf(task: OperatorTask): string {
  const rows: [string, string | null | undefined][] = [
    ['task', `${task.task_id}  ${task.state}`],
    ['agent', task.recorded_only ? `${task.agent} (external: the gateway knows the route only)` : task.agent],
    ['owner', task.owner],
    ['context', task.context_id],
    ['created', task.created_at],
    ['deadline', task.deadline_at],
    ['skill', task.skill],
    ['text', task.text],
    ['reason', task.reason],
    ['decision', task.decision_id && `${task.decision_id}  (npx parley decisions ${task.decision_id})`],
    ['parent', task.parent && `${task.parent.task_id ?? ''}  ${task.parent.agent ?? ''}`],
    ['trace', task.trace_id],
    ['tokens', task.usage && `${task.usage.input_tokens} in, ${task.usage.output_tokens} out`],
  ]
  return rows
    .flatMap(([name, value]) => (value ? [`${name.padEnd(10)}${oneLine(value, 500)}\n`] : []))
    .join('')
}

/** The times of a task: in the queue, in handlers, and in pauses. */
export function timesOf(
  { created_at, updated_at, state, runs }: Pick<Chained, 'created_at' | 'updated_at' | 'state' | 'runs'>,
  now = Date.now(),
) {
  const start = Date.parse(created_at)
  const isOpen = /^(submitted|working|.+-required|unknown)$/.test(state)
  const end = isOpen ? now : Date.parse(updated_at)
  const [first] = runs
  const queued = Math.max(0, (first === undefined ? end : Date.parse(first.started_at)) - start)
  const worked = runs.reduce(
    (sum, run) =>
      sum +
      Math.max(0, (run.ended_at === null ? end : Date.parse(run.ended_at)) - Date.parse(run.started_at)),
    0,
  )
  return { queued, worked, waited: Math.max(0, end - start - queued - worked) }
}

function chainOf(task: OperatorTask, all: readonly Chained[]): string {
  if (task.recorded_only) return ''
  const depthOf = new Map<string, number>()
  for (const { task_id: id, parent_id: parent } of all)
    depthOf.set(id, parent === null ? 0 : (depthOf.get(parent) ?? -1) + 1)
  const rows = all.map((one) => {
    const { queued, worked, waited } = timesOf(one)
    const indent = '  '.repeat(Math.min(5, depthOf.get(one.task_id) ?? 0))
    return [
      `${indent}${oneLine(one.agent, 20)}`,
      oneLine(one.state, 14),
      seconds(queued),
      seconds(worked),
      seconds(waited),
      one.task_id === task.task_id ? '(this task)' : oneLine(one.task_id, 36),
    ]
  })
  return table([['CHAIN', 'STATE', 'QUEUED', 'WORKED', 'PAUSED', 'TASK'], ...rows])
}

/** The events of all tasks in order, by the clock of the gateway. */
function momentsOf(task: OperatorTask, all: readonly Chained[]): string {
  const textOf = new Map(task.events.map(({ sequence, text }) => [sequence, text ?? null]))
  const moments = all.flatMap((one): Moment[] => {
    const skew = task.clock_skew_ms[one.agent] ?? 0
    const time = (text: string) => Date.parse(text) - skew
    const { agent } = one
    return [
      ...one.events.map(({ at, sequence, kind, state, artifact_id: artifact }): Moment => {
        const text = one.task_id === task.task_id ? textOf.get(sequence) : null
        const what = kind === 'status-update' ? (state ?? 'status') : `artifact ${artifact ?? ''}`
        return { at: time(at), agent, what: text ? `${what}  ${JSON.stringify(oneLine(text, 60))}` : what }
      }),
      ...one.runs.map(
        ({ started_at: at }, number): Moment => ({
          at: time(at),
          agent,
          what: number === 0 ? 'handler starts' : `handler starts again (${number + 1})`,
        }),
      ),
      ...one.payments.map(
        ({ created_at: created, completed_at: completed, amount, asset_name: asset, state }): Moment => ({
          at: time(completed ?? created),
          agent,
          what: `payment of ${amount} ${asset}  ${state}`,
        }),
      ),
      ...one.webhooks.flatMap(({ last_attempt_at: last, url, state, attempts }): Moment[] =>
        last === null
          ? []
          : [{ at: time(last), agent, what: `webhook ${oneLine(url, 60)}  ${state}, attempt ${attempts}` }],
      ),
    ]
  })
  const sorted = moments.sort((a, b) => a.at - b.at)
  const [first] = sorted
  if (first === undefined) return ''
  const rows = sorted
    .slice(0, momentsMax)
    .map(({ at, agent, what }) => [`+${seconds(at - first.at)}`, oneLine(agent, 20), oneLine(what, 120)])
  const left = sorted.length - rows.length
  return `${table([['TIME', 'AGENT', 'EVENT'], ...rows])}${left > 0 ? `${left} more events: add --json\n` : ''}`
}

function deliveriesOf({ webhooks, payments, feedback, unread }: OperatorTask): string {
  return [
    ...webhooks.map(
      ({ url, state, delivered, events, attempts, last_error: error }) =>
        `webhook   ${oneLine(url, 60)}  ${state}, ${delivered} of ${events} events, ${attempts} attempts${error === null ? '' : `: ${oneLine(error, 100)}`}\n`,
    ),
    ...payments.map(
      ({ amount, asset_name: asset, state, payer, tx_hash: hash }) =>
        `payment   ${oneLine(amount, 40)} ${oneLine(asset, 20)}  ${oneLine(state, 30)}${payer === null ? '' : ` by ${oneLine(payer, 60)}`}${hash === null ? '' : ` ${oneLine(hash, 70)}`}\n`,
    ),
    ...(feedback === null
      ? []
      : [
          `rating    ${feedback.rating ?? '-'}${feedback.text === null ? '' : `  ${JSON.stringify(oneLine(feedback.text, 200))}`}\n`,
        ]),
    ...unread.map(
      ({ agent, reason }) =>
        `not read  ${agent === '*' ? '' : `${oneLine(agent, slugMax)}: `}${oneLine(reason, 200)}\n`,
    ),
  ].join('')
}

const seconds = (ms: number) =>
  ms < 600_000 ? `${(ms / 1000).toFixed(ms < 10_000 ? 3 : 1)} s` : `${Math.round(ms / 60_000)} min`
