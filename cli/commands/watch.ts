import path from 'node:path'
import type { AgentClient, WireEvent } from '@parley/client/internal/client'
import { conclude, followEvents, sayInterrupted } from '../server/follow-task.ts'
import { explained } from '../server/no-agent.ts'
import { isTaskNotFound, operatorTaskChanges, unlessOwned } from '../server/operator-task.ts'
import { connect, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { interruption } from '../terminal/interrupt.ts'
import { type Io, printJson, say } from '../terminal/io.ts'
import { oneLine } from '../terminal/printable.ts'
import { TaskView } from '../terminal/task-view.ts'
import { uuid } from '../terminal/uuid.ts'
import { wholeNumber } from '../terminal/whole-number.ts'
import { webhookEvents } from '../webhooks/webhook-events.ts'

interface WatchOptions extends ServerOptions {
  agent: string
  out?: string
  webhook?: string | true
  host: string
  port: number
  json?: true
}

export default function watchCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('watch'))
    .argument('<task>', 'id of the task', uuid)
    .option('--agent <agent>', 'name of the agent that has the task; "-" is the server at --url', '-')
    .option('--out <folder>', 'save the files of the answer to this folder (default: only print their names)')
    .option(
      '--webhook [url]',
      'receive the events by webhook; url: address at which the agent reaches this machine',
    )
    .option('--host <host>', 'with --webhook: address to listen on', '127.0.0.1')
    .option('--port <port>', 'with --webhook: port to listen on; 0: any free one', wholeNumber(65_535), 0)
    .option('--json', 'print every event as one line of JSON')
    .addHelpText(
      'after',
      `
Prints the past events of the task, then new ones, until it ends or pauses. Ctrl-C stops watching; the task continues.
With --webhook, the command registers a webhook while it runs and reads past and missed events with tasks/events. An
agent in production must allow an address of this machine (WEBHOOK_ALLOWED_HOSTS=127.0.0.1).

A task of another owner is shown to operators (agent:admin), without its artifacts.

Exit codes: 0 the task completed, or Ctrl-C; 1 it failed, was rejected or canceled, or waits for an answer;
2 incorrect usage.`,
    )
    .run((task: string, options: WatchOptions) => watch(io, task, options))
}

async function watch(io: Io, task: string, options: WatchOptions): Promise<number> {
  const client = (await connect(io, options)).agent(options.agent)
  using leave = interruption()
  const view = new TaskView(io, options.out === undefined ? undefined : path.resolve(io.cwd, options.out))
  const events = eventsOf(io, client, task, { ...options, signal: leave.signal })
  try {
    if (options.json) {
      const standing = await followEvents(events, (event) => printJson(io, event))
      return standing.status.state === 'completed' ? 0 : 1
    }
    const standing = await followEvents(events, (event) => view.event(event))
    view.finish()
    return conclude(io, standing, options.agent)
  } catch (thrown) {
    view.finish()
    if (isTaskNotFound(thrown)) return watchAsOperator(io, task, options, { signal: leave.signal, thrown })
    sayInterrupted(io, explained(thrown, options.agent, 'with --agent'), undefined, options.agent)
    return 0
  }
}

/** Prints the events of a task of another owner. */
async function watchAsOperator(
  io: Io,
  taskId: string,
  options: WatchOptions,
  { signal, thrown }: { signal: AbortSignal; thrown: unknown },
): Promise<number> {
  const { agent, url, token, json } = options
  const asOperator = { agent, ...(url !== undefined && { url }), ...(token !== undefined && { token }) }
  let last = await unlessOwned(thrown, io, asOperator, taskId)
  let shown = 0
  try {
    for await (const task of operatorTaskChanges(io, asOperator, last, signal)) {
      last = task
      for (const event of task.events.filter(({ sequence }) => sequence > shown)) {
        shown = event.sequence
        const { state = 'artifact', text } = event
        if (json) printJson(io, event)
        else say(io, `· ${oneLine(state, 40)}${text ? `  ${oneLine(text, 200)}` : ''}`)
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
    return 0
  }
  return last.state === 'completed' ? 0 : 1
}

function eventsOf(
  io: Io,
  client: AgentClient,
  task: string,
  options: WatchOptions & { signal: AbortSignal },
): AsyncIterable<WireEvent> {
  const { webhook, signal } = options
  if (webhook === undefined) return client.resubscribe(task, 0, { signal })
  const publicUrl = webhook === true ? undefined : webhook
  const note = (line: string) => options.json !== true && say(io, line)
  return webhookEvents(client, task, { ...options, publicUrl, note })
}
