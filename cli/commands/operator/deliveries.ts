import { deliveryDetail, deliveryList, resendAnswer } from '@parley/wire/codecs/answers/operator/deliveries'
import { Option } from 'commander'
import type { z } from 'zod'
import {
  agoText,
  type OperatorApi,
  operatorApi,
  pathWith,
  sayUnread,
  whoSees,
} from '../../server/operator-api.ts'
import { type ServerOptions, withServerOptions } from '../../server/server-connection.ts'
import { CliCommand } from '../../terminal/cli-command.ts'
import { CommandFailed, UsageError } from '../../terminal/faults.ts'
import { type Io, print, printJson, say } from '../../terminal/io.ts'
import { sinceOf } from '../../terminal/lifetime.ts'
import { oneLine } from '../../terminal/printable.ts'
import { wholeNumber } from '../../terminal/whole-number.ts'

interface DeliveriesOptions extends ServerOptions {
  agent?: string
  owner?: string
  state?: string
  config?: string
  resend?: true
  sequence?: number
  since?: string
  limit: number
  cursor?: string
  json?: true
}

type Delivery = z.output<typeof deliveryList>['deliveries'][number]

const help = `
States: delivered, pending, failing (the next event failed and is retried), dropped (an event was given up).

npx parley deliveries --state dropped          webhooks that lost events
npx parley deliveries <task>                   attempts and bodies of the webhooks of a task
npx parley deliveries <task> --resend          sends dropped events again, else the last one
npx parley deliveries --resend --since 2h      sends all events again that were dropped in 2 hours

Events that are sent again keep their order, their IDs and their dialect, so that receivers recognize those that they
have processed.
${whoSees}`

/** `parley deliveries`: lists webhooks with the outcome of their deliveries, and sends events again. */
export default function deliveriesCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('deliveries'))
    .argument('[task]', 'show the webhooks of this task with their attempts')
    .option('--agent <agent>', 'only webhooks of tasks of this agent')
    .option('--owner <client>', 'only webhooks of this client')
    .addOption(
      new Option('--state <state>', 'only webhooks in this state').choices([
        'delivered',
        'pending',
        'failing',
        'dropped',
      ]),
    )
    .option('--config <id>', 'with a task: only the webhook with this ID')
    .option('--resend', 'send events again')
    .option(
      '--sequence <number>',
      'with --resend and a task: from this event on',
      wholeNumber(1_000_000_000, 1),
    )
    .option('--since <time>', 'with --resend: dropped since a time or in a period, such as 2h', sinceOf)
    .option('--limit <count>', 'number of webhooks', wholeNumber(200, 1), 50)
    .option('--cursor <cursor>', 'continue after an earlier page')
    .option('--json', 'print the answer of the gateway as JSON')
    .addHelpText('after', help)
    .run(async (task: string | undefined, options: DeliveriesOptions) => {
      const api = await operatorApi(io, options)
      if (options.resend && task === undefined) return resendSince(io, api, options)
      if (task === undefined) return list(io, api, options)
      const chosen = await deliveriesOf(api, task, options)
      return options.resend ? resend(io, api, chosen, options) : show(io, api, chosen, options)
    })
}

async function list(io: Io, api: OperatorApi, options: DeliveriesOptions): Promise<void> {
  const { agent, owner, state, since, limit, cursor, json } = options
  const path = pathWith('/operator/deliveries', { agent, owner, state, since, limit, cursor })
  const page = await api.send(deliveryList, path)
  if (json) return printJson(io, page)
  if (page.deliveries.length === 0)
    print(io, state === undefined ? 'No task has a webhook.\n' : `No webhook is ${state}.\n`)
  for (const delivery of page.deliveries) print(io, linesOf(delivery))
  sayUnread(io, page.unread)
  if (page.next_cursor !== null) say(io, `More: add --cursor ${page.next_cursor}`)
}

function linesOf(delivery: Delivery): string {
  const { task_id: task, config_id: config, agent, state, settled, events, attempts, set_at: at } = delivery
  const { last_status: status, last_error: error, url } = delivery
  const dropped = Object.entries(delivery.dropped).map(([reason, count]) => `${count} ${oneLine(reason, 20)}`)
  const facts = [
    `${settled} of ${events} events settled`,
    `${attempts} attempts`,
    ...(status === null ? [] : [`last status ${status}`]),
    ...(dropped.length === 0 ? [] : [`dropped: ${dropped.join(', ')}`]),
  ]
  return [
    `${oneLine(task, 36)}  ${oneLine(agent, 20)}  ${state}  ${agoText(at)}`,
    `  ${oneLine(url, 76)}`,
    `  webhook ${oneLine(config, 60)}`,
    `  ${facts.join(', ')}`,
    ...(error === null ? [] : [`  ${oneLine(error, 200)}`]),
    '',
  ].join('\n')
}

/** @throws CommandFailed if the task has no webhook that the caller may see */
async function deliveriesOf(
  api: OperatorApi,
  task: string,
  { agent, owner, config }: DeliveriesOptions,
): Promise<Delivery[]> {
  const path = pathWith('/operator/deliveries', { agent, owner, task, limit: 200 })
  const { deliveries, unread } = await api.send(deliveryList, path)
  const found = deliveries.filter(({ config_id: id }) => config === undefined || id === config)
  if (found.length > 0) return found
  const reasons = unread.map(({ reason }) => ` ${oneLine(reason, 200)}`).join('')
  throw new CommandFailed(`This task has no such webhook.${reasons} List them with: npx parley deliveries`)
}

const pathOf = ({ agent, task_id: task, config_id: config }: Delivery) =>
  `/operator/deliveries/${[agent, task, config].map(encodeURIComponent).join('/')}`

async function show(
  io: Io,
  api: OperatorApi,
  chosen: Delivery[],
  { json }: DeliveriesOptions,
): Promise<void> {
  const details = await Promise.all(chosen.map((delivery) => api.send(deliveryDetail, pathOf(delivery))))
  if (json) return printJson(io, { deliveries: details })
  for (const detail of details) {
    print(io, linesOf(detail))
    for (const { at, sequence, duration_ms: ms, status, error, next_attempt_at: next } of detail.tries) {
      const outcome = error === null ? `status ${status ?? '-'}` : oneLine(error, 100)
      const retry = next === null ? '' : `, next attempt at ${next.slice(11, 19)}Z`
      print(io, `  ${at.slice(0, 19)}Z  event ${sequence}  ${ms} ms  ${outcome}${retry}\n`)
    }
    for (const { sequence, settled, body } of detail.bodies) {
      print(io, `  event ${sequence}${settled ? '' : ' (not settled)'}:\n`)
      print(io, `    ${body === null ? 'too large to be shown' : oneLine(JSON.stringify(body), 2000)}\n`)
    }
  }
}

async function resend(
  io: Io,
  api: OperatorApi,
  chosen: Delivery[],
  options: DeliveriesOptions,
): Promise<void> {
  const [one] = chosen
  if (one === undefined) return
  if (chosen.length > 1) {
    const ids = chosen.map(({ config_id: id }) => `--config ${oneLine(id, 60)}`).join('\n  ')
    throw new UsageError(`The task has several webhooks. Name one of them:\n  ${ids}`)
  }
  const { sequence, json } = options
  const body = sequence === undefined ? {} : { sequence }
  const answer = await api.send(resendAnswer, `${pathOf(one)}/resend`, { method: 'POST', body })
  if (json) return printJson(io, answer)
  print(io, `${eventsText(answer.events)} of task ${oneLine(one.task_id, 36)} will be sent again.\n`)
}

async function resendSince(io: Io, api: OperatorApi, options: DeliveriesOptions): Promise<void> {
  const { since, agent, owner, json } = options
  if (since === undefined)
    throw new UsageError('--resend needs a task, or --since <time> for all webhooks: --resend --since 2h')
  const body = { since, ...(agent !== undefined && { agent }), ...(owner !== undefined && { owner }) }
  const answer = await api.send(resendAnswer, '/operator/deliveries/resend', { method: 'POST', body })
  if (json) return printJson(io, answer)
  print(
    io,
    `${eventsText(answer.events)} of ${answer.configs === 1 ? '1 webhook' : `${answer.configs} webhooks`} will be sent again.\n`,
  )
  if (answer.more === true) say(io, 'There are more webhooks with dropped events: repeat the command.')
  sayUnread(io, answer.unread ?? [])
}

const eventsText = (count: number) => (count === 1 ? '1 event' : `${count} events`)
