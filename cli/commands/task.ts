import { setTimeout as delay } from 'node:timers/promises'
import { isTerminal } from '@parley/wire/model/task'
import { explained } from '../server/no-agent.ts'
import { durationText } from '../server/operator-api.ts'
import { operatorTask, unlessOwned } from '../server/operator-task.ts'
import { connect, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { readTaskTree, type TaskNode } from '../server/task-tree.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { UsageError } from '../terminal/faults.ts'
import { type Io, print, printJson, say } from '../terminal/io.ts'
import { axisOf, type OperatorTask } from '../terminal/operator-task-axis.ts'
import { oneLine } from '../terminal/printable.ts'
import { promptOf } from '../terminal/question.ts'
import { TaskView, textOf } from '../terminal/task-view.ts'
import { uuid } from '../terminal/uuid.ts'

interface TaskOptions extends ServerOptions {
  agent: string
  tree?: true
  cancel?: true
  timeline?: true
  json?: true
}

export default function taskCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('task'))
    .argument('<task>', 'id of the task', uuid)
    .option('--agent <agent>', 'name of the agent that has the task; "-" is the server at --url', '-')
    .option('--tree', 'show the tasks that this task created at other agents, and theirs')
    .option('--cancel', 'cancel the task first; its agent also cancels the tasks that it created')
    .option(
      '--timeline',
      'show the events of the task and its chain on one time axis, as the operator sees them',
    )
    .option('--json', 'print the task, or the tree, as JSON')
    .addHelpText(
      'after',
      `
Prints the state of a task and its answer. With --tree, prints a line for each task of a chain of agents: the agent,
the state, the duration, the request and the task id. Tasks that you may not read are listed with the reason.

A task of another owner is shown to operators as with --timeline: time in the queue, in handlers and in pauses, the
chain, events, webhooks, payments, and the decision of the gateway. npx parley cancel <id> cancels it.

With --cancel and --tree, the command waits up to 5 seconds for the tasks of the chain to end.

Exit codes: 0 the task was read, and canceled with --cancel; 1 it could not be; 2 incorrect usage.`,
    )
    .run((task: string, options: TaskOptions) => show(io, task, options))
}

async function show(io: Io, taskId: string, options: TaskOptions): Promise<void> {
  const { agent, tree, cancel, timeline, json, ...serverOptions } = options
  if (timeline && (tree || cancel))
    throw new UsageError('--timeline cannot be combined with --tree or --cancel.')
  const asOperator = { ...serverOptions, agent }
  const printAxis = (task: OperatorTask) => (json ? printJson(io, task) : print(io, axisOf(task)))
  if (timeline) return printAxis(await operatorTask(io, asOperator, taskId))
  const server = await connect(io, serverOptions)
  try {
    const canceled = cancel ? await server.agent(agent).cancel(taskId) : undefined
    if (tree) {
      const read = () => readTaskTree((slug) => server.agent(slug), { agent, taskId: taskId.toLowerCase() })
      const root = canceled === undefined ? await read() : await ended(read)
      if (json) printJson(io, root)
      else print(io, `${linesOf(root).join('\n')}\n`)
      return
    }
    const task = canceled ?? (await server.agent(agent).get(taskId))
    if (json) return printJson(io, task)
    const view = new TaskView(io, undefined)
    view.state(task.status.state, task.id)
    for (const artifact of task.artifacts ?? []) await view.artifact(artifact)
    await view.reply(task.status)
    view.finish()
    if (task.status.state === 'completed') return
    if (isTerminal(task.status.state)) {
      const reason = oneLine(textOf(task.status.message?.parts ?? [], ' '), 1000)
      if (reason !== '') say(io, reason)
    } else if (task.status.message !== undefined) say(io, promptOf(task.status))
  } catch (thrown) {
    if (cancel || tree) throw explained(thrown, agent, 'with --agent')
    printAxis(await unlessOwned(explained(thrown, agent, 'with --agent'), io, asOperator, taskId))
  }
}

/** Reads the tree until all its tasks have ended, for at most 5 seconds. */
async function ended(read: () => Promise<TaskNode>): Promise<TaskNode> {
  const until = performance.now() + 5000
  for (let waitMs = 50; ; waitMs *= 2) {
    const root = await read()
    if (!isOpen(root) || performance.now() + waitMs > until) return root
    await delay(waitMs)
  }
}

const isOpen = ({ state, children }: TaskNode): boolean =>
  (state !== undefined && !isTerminal(state)) || children.some(isOpen)

function linesOf(node: TaskNode, before = '', branch = ''): string[] {
  const { children } = node
  const below = before + (branch === '' ? '' : branch === '├─ ' ? '│  ' : '   ')
  return [
    `${before}${branch}${lineOf(node)}`,
    ...children.flatMap((child, at) => linesOf(child, below, at === children.length - 1 ? '└─ ' : '├─ ')),
  ]
}

function lineOf({ agent, taskId, state, durationMs, request, note }: TaskNode): string {
  const columns = [
    oneLine(agent ?? 'unknown agent', 40),
    state ?? 'not shown',
    ...(durationMs === undefined ? [] : [durationText(durationMs)]),
    ...(request === undefined ? [] : [JSON.stringify(oneLine(request, 80))]),
    oneLine(taskId, 60),
    ...(note === undefined ? [] : [`(${oneLine(note, 200)})`]),
  ]
  return columns.join('  ')
}
