import { setTimeout as wait } from 'node:timers/promises'
import { type NumberedEvent, positionOf } from '@parley/wire/codecs/parley/events'
import { methodOf } from '@parley/wire/codecs/parley/methods'
import { fieldNames } from '@parley/wire/codecs/parley/push-config'
import { InvalidArgumentError } from 'commander'
import { CliCommand } from '../terminal/cli-command.ts'
import { interruption } from '../terminal/interrupt.ts'
import { type Io, print, printJson, say } from '../terminal/io.ts'
import { oneLine } from '../terminal/printable.ts'
import { uuid } from '../terminal/uuid.ts'
import { wholeNumber } from '../terminal/whole-number.ts'
import { type Entry, EventLedger } from '../webhooks/event-ledger.ts'
import { eventLine } from '../webhooks/numbered-event.ts'
import { WebhookServer } from '../webhooks/webhook-server.ts'

interface ListenOptions {
  host: string
  port: number
  token?: string
  fail?: number
  times?: number
  hang?: number
  once?: string | true
  json?: true
}

export default function listenCommand(io: Io): CliCommand {
  return new CliCommand('listen')
    .option('--port <port>', 'port to listen on; 0: any free one', wholeNumber(65_535), 7399)
    .option('--host <host>', 'address to listen on', '127.0.0.1')
    .option('--token <token>', 'accept only requests with this bearer token')
    .option(
      '--fail <status>',
      'always respond with this status, to simulate a failing receiver',
      statusToFailWith,
    )
    .option(
      '--hang <ms>',
      'delay each response by this many milliseconds, to simulate a slow receiver',
      wholeNumber(3_600_000),
    )
    .option(
      '--times <n>',
      'fail and hang for the first n posts of each event only (default: all)',
      wholeNumber(1e6),
    )
    .option('--once [task]', 'exit when this task (default: any task) ends', uuid)
    .option(
      '--json',
      'print each delivery as one line of JSON: {event, post, answered, again, late, missing}',
    )
    .addHelpText(
      'after',
      `
Receives webhooks: prints its address on stderr, then one line per event on stdout. Register the address with
${methodOf('setPushConfig')}, with ${fieldNames.pushConfig} in ${methodOf('sendMessage')}, or as WEBHOOK_URL. The agent must be
able to reach it; with NODE_ENV=production, the agent must also allow it (WEBHOOK_ALLOWED_HOSTS=127.0.0.1).
Reports missing, late and duplicate sequence numbers as they occur, with totals at the end (Ctrl-C). Webhooks that were set
with an A2A dialect are printed too; they have no sequence numbers and are not in the totals.

Exit codes: 0 all events arrived in order (with --once: and the task completed); 1 events are missing or arrived late
(with --once: or the task did not complete); 2 incorrect usage.`,
    )
    .run((options: ListenOptions) => listen(io, options))
}

async function listen(io: Io, options: ListenOptions): Promise<number> {
  using leave = interruption()
  const ledger = new EventLedger()
  const ended = Promise.withResolvers<boolean>()
  leave.signal.addEventListener('abort', () => ended.resolve(true), { once: true })
  await using server = await WebhookServer.start({
    host: options.host,
    port: options.port,
    token: options.token,
    async receive(event) {
      // Decide on the failure before counting, because a rejected delivery is not recorded as received.
      const failing = ledger.postsOf(event) < (options.times ?? Number.POSITIVE_INFINITY)
      const status = failing ? (options.fail ?? 200) : 200
      const entry = ledger.note(event, status < 300)
      show(io, event, entry, status, options)
      if (failing && options.hang !== undefined) await wait(options.hang, undefined, { signal: leave.signal })
      if (status < 300 && endsIt(event, options.once)) ended.resolve(isCompleted(event))
      return status
    },
    receiveA2a(event) {
      const status = options.fail ?? 200
      if (options.json) printJson(io, { event, answered: status })
      else print(io, `${event.line}${status < 300 ? '' : ` [answered with ${status}]`}\n`)
      if (status < 300 && event.isFinal && isSought(event.taskId, options.once))
        ended.resolve(event.state === 'completed')
      return status
    },
    refuse: (why) => say(io, `! refused a post: ${why}`),
  })
  say(io, `Listening at ${server.url}`)
  const well = await ended.promise
  return conclude(io, ledger, options) && well ? 0 : 1
}

function show(io: Io, event: NumberedEvent, entry: Entry, status: number, options: ListenOptions): void {
  const { post, again, late, missing } = entry
  if (options.json) return printJson(io, { event, post, answered: status, again, late, missing })
  const notes = [
    ...(post > 1 ? [`post ${post} of it`] : []),
    ...(again ? ['came before'] : []),
    ...(status < 300 ? [] : [`answered with ${status}`]),
  ]
  print(io, `${eventLine(event)}${notes.length === 0 ? '' : ` [${notes.join(', ')}]`}\n`)
  if (late) say(io, `! #${event.sequence} came after a higher number`)
  if (missing.length > 0) say(io, `! before #${event.sequence} did not come: ${span(missing)}`)
}

function conclude(io: Io, ledger: EventLedger, options: ListenOptions): boolean {
  const { tasks, events, posts, repeated, missing, outOfOrder } = ledger.totals
  if (options.json) io.stderr.write(`${JSON.stringify({ totals: ledger.totals })}\n`)
  else
    say(
      io,
      `${events} events of ${tasks} tasks in ${posts} posts: ${missing} missing, ${outOfOrder} out of order, ${repeated} repeated.`,
    )
  return missing === 0 && outOfOrder === 0
}

function endsIt(event: NumberedEvent, once: string | true | undefined): boolean {
  return event.kind === 'status-update' && event.final && isSought(positionOf(event).taskId, once)
}

function isSought(taskId: string, once: string | true | undefined): boolean {
  return once === true || once?.toLowerCase() === taskId.toLowerCase()
}

function isCompleted(event: NumberedEvent): boolean {
  return event.kind === 'status-update' && event.status.state === 'completed'
}

function span(numbers: number[]): string {
  const [first, last] = [numbers[0], numbers.at(-1)]
  return oneLine(first === last ? `#${first}` : `#${first} to #${last}`)
}

function statusToFailWith(text: string): number {
  if (!/^[345]\d\d$/.test(text)) throw new InvalidArgumentError('It is not a status from 300 to 599.')
  return Number(text)
}
