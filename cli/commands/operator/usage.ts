import { usageAnswer } from '@parley/wire/codecs/answers/operator/usage'
import { InvalidArgumentError } from 'commander'
import type { z } from 'zod'
import { durationText, operatorApi, pathWith, sayUnread, whoSees } from '../../server/operator-api.ts'
import { type ServerOptions, withServerOptions } from '../../server/server-connection.ts'
import { CliCommand } from '../../terminal/cli-command.ts'
import { type Io, print, printJson } from '../../terminal/io.ts'
import { oneLine } from '../../terminal/printable.ts'

interface UsageOptions extends ServerOptions {
  caller?: string
  agent?: string
  since?: string
  until?: string
  by: string
  json?: true
}

type Row = z.output<typeof usageAnswer>['usage'][number]

const dayMs = 86_400_000

/** `parley usage`: sums tasks, working time, tokens and amounts per day, agent and caller. */
export default function usageCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('usage'))
    .option('--caller <client>', 'only this caller')
    .option('--agent <agent>', 'only this agent')
    .option('--since <day>', 'first day in UTC, or a number of days such as 30d (default: 7d)', dayOf)
    .option('--until <day>', 'last day in UTC (default: today)', dayOf)
    .option('--by <fields>', 'one line for each of: day, agent, caller', fieldsOf, 'caller')
    .option('--json', 'print the answer of the gateway as JSON')
    .addHelpText(
      'after',
      `
What a caller spent today:  npx parley usage --caller <client> --since 1d --by agent
Amounts are settled payments that were not refunded. Of external agents only the number of tasks is known.
${whoSees}`,
    )
    .run((options: UsageOptions) => run(io, options))
}

/** @throws InvalidArgumentError */
function dayOf(given: string): string {
  const [, days] = /^(\d{1,3})d$/.exec(given) ?? []
  const at = days === undefined ? Date.parse(given) : Date.now() - (Math.max(1, Number(days)) - 1) * dayMs
  if (!Number.isNaN(at)) return new Date(at).toISOString().slice(0, 10)
  throw new InvalidArgumentError('Use a day such as 2026-11-22, or a number of days such as 30d.')
}

/** @throws InvalidArgumentError */
function fieldsOf(given: string): string {
  const names = given.split(',').map((name) => name.trim())
  if (names.every((name) => ['day', 'agent', 'caller'].includes(name))) return names.join(',')
  throw new InvalidArgumentError('Use day, agent and caller, separated by commas.')
}

async function run(io: Io, options: UsageOptions): Promise<void> {
  const { caller: owner, agent, since, until, json } = options
  const by = options.by.replace('caller', 'owner')
  const api = await operatorApi(io, options)
  const answer = await api.send(usageAnswer, pathWith('/operator/usage', { owner, agent, since, until, by }))
  if (json) return printJson(io, answer)
  if (answer.usage.length === 0) print(io, 'No tasks and no payments in this period.\n')
  for (const row of answer.usage) print(io, linesOf(row))
  sayUnread(io, answer.unread)
}

function linesOf(row: Row): string {
  const { day, agent, owner, tasks, completed, failed, paid } = row
  const name = [day, agent, owner]
    .filter((part) => part !== undefined)
    .map((part) => oneLine(part, 76))
    .join('  ')
  const tokens = row.input_tokens + row.output_tokens
  const facts = [
    `${tasks} ${tasks === 1 ? 'task' : 'tasks'} (${completed} completed, ${failed} failed)`,
    ...(row.worked_ms > 0 ? [durationText(row.worked_ms)] : []),
    ...(tokens > 0 ? [`${tokens} ${tokens === 1 ? 'token' : 'tokens'}`] : []),
  ]
  const amounts = paid.map(
    ({ amount, asset_name: asset, network, sandbox }) =>
      `  paid ${oneLine(amount, 40)} ${oneLine(asset, 20)} on ${oneLine(network, 40)}${sandbox ? ' (test money)' : ''}`,
  )
  return [name === '' ? 'all' : name, `  ${facts.join(', ')}`, ...amounts, ''].join('\n')
}
