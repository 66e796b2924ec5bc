import { taskList, taskRow } from '@parley/wire/codecs/answers/operator/tasks'
import { jsonOf } from '@parley/wire/model/json-text'
import type { z } from 'zod'
import {
  agoText,
  type OperatorApi,
  operatorApi,
  pathWith,
  sayUnread,
  whoSees,
} from '../../server/operator-api.ts'
import { followSse } from '../../server/operator-events.ts'
import { type ServerOptions, withServerOptions } from '../../server/server-connection.ts'
import { CliCommand } from '../../terminal/cli-command.ts'
import { UsageError } from '../../terminal/faults.ts'
import { interruption } from '../../terminal/interrupt.ts'
import { type Io, print, printJson, say } from '../../terminal/io.ts'
import { lifetimeOf } from '../../terminal/lifetime.ts'
import { oneLine } from '../../terminal/printable.ts'
import { table } from '../../terminal/table.ts'
import { wholeNumber } from '../../terminal/whole-number.ts'

interface TasksOptions extends ServerOptions {
  agent?: string
  owner?: string
  state?: string
  context?: string
  age?: string
  waiting?: true
  limit: number
  cursor?: string
  watch?: true
  json?: true
}

type Row = z.output<typeof taskRow>

export default function tasksCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('tasks'))
    .option('--agent <agent>', 'only tasks of this agent')
    .option('--owner <client>', 'only tasks of this client')
    .option('--state <states>', 'only tasks in these states, separated by commas, for example working,failed')
    .option('--context <id>', 'only tasks of this context')
    .option('--age <duration>', 'only tasks whose state changed within this time, for example 1h')
    .option('--waiting', 'only tasks that wait for a person or a payment')
    .option('--limit <count>', 'number of tasks', wholeNumber(200, 1), 20)
    .option('--cursor <cursor>', 'continue after an earlier page')
    .option('--watch', 'then print each change until Ctrl-C')
    .option('--json', 'print the answer of the gateway as JSON; with --watch, one task per line')
    .addHelpText(
      'after',
      `
Lists the tasks of all agents by the time of their last change of state, newest first. npx parley task <id> shows one.
${whoSees}`,
    )
    .members({ since: '--age', state: '--state', agent: '--agent', cursor: '--cursor' })
    .run((options: TasksOptions) => run(io, options))
}

async function run(io: Io, options: TasksOptions): Promise<void> {
  const { agent, owner, state, context, age, waiting, limit, cursor, watch, json } = options
  if (watch && cursor !== undefined)
    throw new UsageError('--watch begins with the newest tasks: omit --cursor.')
  const api = await operatorApi(io, options)
  const since =
    age === undefined
      ? undefined
      : new Date(Date.now() - lifetimeOf(age, Infinity, '--age') * 1000).toISOString()
  const query = { limit, agent, owner, state, context, since, waiting, cursor }
  const page = await api.send(taskList, pathWith('/operator/tasks', query))
  if (watch) return follow(io, api, options, page.tasks)
  if (json) return printJson(io, page)
  if (page.tasks.length === 0) print(io, 'No tasks.\n')
  else print(io, tableOf(page.tasks))
  sayUnread(io, page.unread)
  if (page.next_cursor !== null) say(io, `More: add --cursor ${page.next_cursor}`)
}

function tableOf(tasks: readonly Row[]): string {
  const rows = tasks.map((task) => [
    oneLine(task.task_id, 36),
    oneLine(task.agent, 14),
    oneLine(task.state, 14),
    agoText(task.since),
  ])
  const lines = table([['TASK', 'AGENT', 'STATE', 'SINCE'], ...rows])
    .trimEnd()
    .split('\n')
  const [head = '', ...body] = lines
  const below = body.map((line, at) => {
    const task = tasks[at]
    const facts = task && [
      oneLine(task.owner, 60),
      ...(task.text === null ? [] : [JSON.stringify(oneLine(task.text, 60))]),
    ]
    return `${line}\n  ${facts?.join('  ') ?? ''}`
  })
  return `${[head, ...below].join('\n')}\n`
}

/** Prints the tasks oldest first, then each change. */
async function follow(io: Io, api: OperatorApi, options: TasksOptions, known: readonly Row[]): Promise<void> {
  using leave = interruption()
  const show = (task: Row) => {
    if (options.json) return printJson(io, task)
    const { since, state, agent, task_id: id, owner } = task
    print(
      io,
      `${timeText(since)}  ${oneLine(state, 14).padEnd(14)}  ${oneLine(agent, 14).padEnd(14)}  ${oneLine(id, 36)}  ${oneLine(owner, 60)}\n`,
    )
  }
  for (const task of known.toReversed()) show(task)
  for await (const { type, data } of followSse(api.connection, '/operator/events?types=task', leave.signal)) {
    if (type === 'reset') say(io, 'Some changes were missed: npx parley tasks lists the tasks.')
    const task = taskRow.safeParse(jsonOf(data)).data
    if (type === 'task' && task !== undefined && isWanted(task, options)) show(task)
  }
}

function isWanted(task: Row, { agent, owner, state, context, waiting }: TasksOptions): boolean {
  return (
    (agent === undefined || task.agent === agent) &&
    (owner === undefined || task.owner === owner) &&
    (state === undefined || state.split(',').includes(task.state)) &&
    (context === undefined || task.context_id === context) &&
    (waiting === undefined || task.state.endsWith('-required'))
  )
}

const timeText = (time: string) => new Date(time).toISOString().slice(11, 23)
