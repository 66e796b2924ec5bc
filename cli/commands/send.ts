import { randomUUID } from 'node:crypto'
import path from 'node:path'
import {
  type AgentClient,
  type OutgoingMessage,
  RpcError,
  type SendConfiguration,
  type WireEvent,
} from '@parley/client/internal/client'
import { webhookConfiguration } from '@parley/wire/codecs/parley/push-config'
import { idsOf } from '@parley/wire/codecs/parley/task'
import { isDecimal } from '@parley/wire/model/amount'
import { isPaused } from '@parley/wire/model/task'
import { InvalidArgumentError } from 'commander'
import { completeMessage, type Outgoing } from '../server/complete-message.ts'
import { clientSettings } from '../server/environment.ts'
import { conclude, concludeJson, followEvents, type Standing, sayInterrupted } from '../server/follow-task.ts'
import { type MessageOptions, messageOf, messageOptions } from '../server/message.ts'
import { explained } from '../server/no-agent.ts'
import { fetchThatPays, type PayOptions, unpaid } from '../server/pay.ts'
import { requireTask } from '../server/require-task.ts'
import { ToldRoute } from '../server/route-report.ts'
import { connect, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { mayStream } from '../server/streams.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { UsageError } from '../terminal/faults.ts'
import { interruption } from '../terminal/interrupt.ts'
import { type Io, print, printJson } from '../terminal/io.ts'
import { isMessage, printMessage } from '../terminal/message-answer.ts'
import { askOnTerminal, isInteractive } from '../terminal/question.ts'
import { TaskView } from '../terminal/task-view.ts'

interface SendOptions extends ServerOptions, MessageOptions, PayOptions {
  out?: string
  new?: true
  webhook?: string
  webhookToken?: string
  wait: boolean
  json?: true
}

/** Default folder for downloaded files, which `.gitignore` lists. */
const downloads = 'parley-downloads'

export default function sendCommand(io: Io): CliCommand {
  const command = new CliCommand('send')
    .argument('<agent>', 'name of the agent (see npx parley agents), or "-" to let the gateway choose one')
    .argument(
      '[text]',
      'what to say ("--" before a text that begins with "-"); "-" alone reads it from stdin',
    )
  return withServerOptions(messageOptions(command))
    .option(
      '--out <folder>',
      `folder for the files of the answer (default: ./${downloads}; with --json they are not saved)`,
    )
    .option('--new', 'with --task: start a new task with this id instead of continuing one')
    .option('--webhook <url>', 'also post the events of the task to this URL (see npx parley listen)')
    .option('--webhook-token <token>', 'with --webhook: bearer token of the deliveries')
    .option(
      '--pay',
      'pay what the agent asks, in test money, with the wallet of this folder (npx parley wallet)',
    )
    .option('--yes', 'with --pay: pay without confirmation')
    .option('--max <amount>', 'with --pay: pay up to this amount without confirmation', amount)
    .option('--no-wait', 'print the id of the new task and exit')
    .option('--json', 'print the task as JSON instead of its answer')
    .addHelpText(
      'after',
      `
The text of the answer goes to stdout, progress and questions to stderr. A terminal shows the text as it is streamed.
Data objects are printed as JSON when the answer has no text. Files are saved under the last component of their name
and never overwrite an existing file. When the agent asks for input, the command prompts on the terminal; without a
terminal it prints the question and exits: answer with --task.

Exit codes: 0 the task completed (with --no-wait: was accepted); 1 it failed, was rejected or canceled, or waits for an
answer (--json shows its state); 2 incorrect usage.`,
    )
    .run((agent: string, text: string | undefined, options: SendOptions) => send(io, agent, text, options))
}

async function send(io: Io, agent: string, text: string | undefined, options: SendOptions): Promise<number> {
  const server = await connect(io, options)
  const told = agent === '-' ? new ToldRoute(io, server) : undefined
  const { dataDir } = clientSettings(io)
  const client = server.agent(agent, {
    fetch: fetchThatPays({ io, server, dataDir, agent, options }, told?.fetch),
    // Leaves time for the confirmation prompt.
    ...(options.pay && { requestTimeoutMs: 600_000 }),
  })
  const message = await messageOf(io, text, options)
  if (options.new && options.task === undefined) throw new UsageError('--new needs --task <id>.')
  try {
    const known =
      options.task === undefined || options.new ? undefined : await requireTask(client, options.task, agent)
    const first = completeMessage(
      agent,
      { message, configuration: configurationOf(options) },
      known && idsOf(known).contextId,
    )
    if (options.wait) {
      const streams = await mayStream(server, agent)
      return await converse(io, { client, streams }, first, agent, options)
    }
    const task = await client.send(first.message, first.configuration)
    if (options.json) printJson(io, task)
    else if (isMessage(task)) printMessage(io, task, agent)
    else print(io, `${task.id}\n`)
    return 0
  } catch (thrown) {
    told?.refused(thrown)
    throw explained(unpaid(thrown) ?? thrown, agent)
  }
}

/** Message for a task that waits for a payment. The agent answers it with 402 and the price. */
const payment: OutgoingMessage = { text: 'Payment' }

/** Sends the message, prints the events and prompts for input whenever the task requires it. */
async function converse(
  io: Io,
  { client, streams }: { client: AgentClient; streams: boolean },
  first: Outgoing,
  agent: string,
  options: SendOptions,
) {
  using leave = interruption()
  const view = new TaskView(io, folderOf(io, options))
  const show = options.json && options.out === undefined ? () => {} : (event: WireEvent) => view.event(event)
  let known: Standing | undefined
  try {
    // The webhook stays registered for the task, so follow-up messages do not repeat it.
    for (let outgoing = first; ; ) {
      const standing = await follow(client, outgoing, view, {
        streams,
        show,
        signal: leave.signal,
        noted: (at) => (known = at),
      })
      if (isMessage(standing)) {
        if (options.json) printJson(io, standing)
        else printMessage(io, standing, agent)
        return 0
      }
      if (options.json) return await concludeJson(io, standing, client)
      view.finish()
      const { state } = standing.status
      const pays = state === 'payment-required' && options.pay === true
      if (!isPaused(state) || !(pays || isInteractive(io))) return conclude(io, standing, agent)
      const answer = pays ? payment : await askOnTerminal(io, standing.status, leave.signal)
      if (answer === undefined) return conclude(io, standing, agent)
      const message = { ...answer, taskId: standing.taskId, contextId: standing.contextId }
      outgoing = completeMessage(agent, { message, configuration: undefined })
    }
  } catch (thrown) {
    view.finish()
    sayInterrupted(io, thrown, known?.taskId, agent)
    return 1
  }
}

interface Following {
  /** If false, the message is sent and the task is polled. */
  streams: boolean
  show: (event: WireEvent) => void | Promise<void>
  noted: (standing: Standing) => void
  signal: AbortSignal
}

/** Uses `message/stream` when the agent supports streaming, otherwise polls. */
async function follow(
  client: AgentClient,
  { message, configuration }: Outgoing,
  view: TaskView,
  following: Following,
) {
  const { streams, show, noted, signal } = following
  if (!streams) return poll(client, { message, configuration }, view, following)
  let told = false
  const events = client.stream(message, configuration, { signal })
  try {
    return await followEvents(events, show, (standing) => {
      told = true
      noted(standing)
    })
  } catch (thrown) {
    if (told || !(thrown instanceof RpcError) || thrown.code !== -32004) throw thrown
  }
  return poll(client, { message, configuration }, view, following)
}

/** Sends the message and polls until its task ends or pauses. */
async function poll(
  client: AgentClient,
  { message, configuration }: Outgoing,
  view: TaskView,
  { streams, noted, signal }: Following,
) {
  const accepted = await client.send(message, configuration, { signal })
  if (isMessage(accepted)) return accepted
  noted({ ...idsOf(accepted), status: accepted.status })
  view.state(accepted.status.state, accepted.id)
  const task = await client.wait(accepted.id, { signal, stream: streams })
  view.state(task.status.state, task.id)
  // Other implementations omit an empty list.
  for (const artifact of task.artifacts ?? []) await view.artifact(artifact)
  await view.reply(task.status)
  return { ...idsOf(task), status: task.status }
}

function amount(text: string): string {
  if (!isDecimal(text)) throw new InvalidArgumentError('It is not an amount like "0.05".')
  return text
}

function configurationOf({ webhook, webhookToken }: SendOptions): SendConfiguration | undefined {
  if (webhook === undefined && webhookToken === undefined) return undefined
  if (webhook === undefined) throw new UsageError('--webhook-token goes with --webhook.')
  const token = webhookToken === undefined ? {} : { token: webhookToken }
  return webhookConfiguration({ id: randomUUID(), url: webhook, ...token })
}

/** Returns undefined with --json, because the files are then part of the printed task. */
function folderOf(io: Io, options: SendOptions): string | undefined {
  if (options.out === undefined && options.json) return undefined
  return path.resolve(io.cwd, options.out ?? downloads)
}
