import { decisionDetail, decisionList } from '@parley/wire/codecs/answers/operator/records'
import { readNegotiation } from '@parley/wire/codecs/parley/negotiation'
import type { z } from 'zod'
import { agoText, operatorApi, pathWith, whoSees } from '../../server/operator-api.ts'
import { type RecordListOptions, withRecordListOptions } from '../../server/record-list.ts'
import { withServerOptions } from '../../server/server-connection.ts'
import { CliCommand } from '../../terminal/cli-command.ts'
import { type Io, print, printJson, say } from '../../terminal/io.ts'
import { oneLine, slugMax } from '../../terminal/printable.ts'
import { printRanking } from '../../terminal/ranking-view.ts'
import { table } from '../../terminal/table.ts'

interface DecisionsOptions extends RecordListOptions {
  agent?: string
  owner?: string
  outcome?: string
  task?: string
  q?: string
}

export default function decisionsCommand(io: Io): CliCommand {
  const command = withServerOptions(new CliCommand('decisions'))
    .argument('[decision]', 'id of a decision (x-negotiation-id), to show it')
    .option('--agent <agent>', 'only decisions for this agent')
    .option('--owner <client>', 'only decisions for this client')
    .option('--outcome <outcome>', 'only accepted, rejected, none or answered')
    .option('--task <task>', 'only the decision that placed this task')
    .option('--q <words>', 'only decisions with these words in names, reasons or shown text')
  return withRecordListOptions(command, 'decisions', 20)
    .addHelpText(
      'after',
      `
Lists why the gateway chose its agents, newest first. With an id, shows the candidates with their sub-scores as bars, the
matched words, the excluded agents with the rule, the weights, and what people said about the decision.
${whoSees}

Exit codes: 0 done; 1 failure, or no such decision; 2 incorrect usage.`,
    )
    .members({ limit: '--limit', since: '--since', until: '--until', outcome: '--outcome' })
    .run((id: string | undefined, options: DecisionsOptions) =>
      id === undefined ? list(io, options) : show(io, id, options),
    )
}

async function list(io: Io, options: DecisionsOptions): Promise<void> {
  const { json, url: _url, token: _token, ...query } = options
  const api = await operatorApi(io, options)
  const page = await api.send(decisionList, pathWith('/operator/decisions', { ...query }))
  if (json) return printJson(io, page)
  const rows = page.decisions.map(({ id, at, chosen, outcome, score }) => [
    oneLine(id, 32),
    oneLine(chosen ?? '-', 18),
    score === null ? '-' : score.toFixed(2),
    outcome,
    agoText(at),
  ])
  if (rows.length > 0) print(io, table([['DECISION', 'AGENT', 'SCORE', 'OUTCOME', 'AGE'], ...rows]))
  else print(io, 'No decisions.\n')
  if (page.next_cursor !== null) say(io, `More: add --cursor ${page.next_cursor}`)
  else if (rows.length > 0) say(io, 'Details: npx parley decisions <decision>')
}

async function show(io: Io, id: string, options: DecisionsOptions): Promise<void> {
  const api = await operatorApi(io, options)
  const decision = await api.send(decisionDetail, `/operator/decisions/${encodeURIComponent(id)}`)
  if (options.json) return printJson(io, decision)
  const { chosen, outcome, at, owner, task_id, trace_id, text, weights, record, feedback } = decision
  const facts: [string, string | null][] = [
    ['chosen', chosen ?? `none (${outcome})`],
    ['at', at],
    ['for', owner ?? 'a request without a token'],
    ['task', task_id],
    ['trace', trace_id],
    ['text', text],
    ['tried', record.tried.map(({ agent, outcome: how }) => `${agent} (${how})`).join(', ') || null],
    ['weights', weights === null ? null : weightsText(weights)],
  ]
  for (const [name, value] of facts)
    if (value !== null) print(io, `${name.padEnd(8)} ${oneLine(value, 300)}\n`)
  print(io, '\n')
  printRanking(io, readNegotiation(record))
  for (const verdict of feedback) print(io, verdictLine(verdict))
  say(io, `Was it the wrong agent? npx parley feedback ${oneLine(id, 36)} --wrong --right <agent>`)
}

function weightsText(weights: object): string {
  return Object.entries(weights)
    .map(([name, value]) => `${name} ${String(value)}`)
    .join(', ')
}

export function verdictLine({
  verdict,
  right_agent: right,
  comment,
  by,
  at,
}: z.output<typeof decisionDetail>['feedback'][number]): string {
  const instead = right === null ? '' : `, better: ${oneLine(right, slugMax)}`
  const said = comment === null ? '' : `: ${oneLine(comment, 300)}`
  return `${verdict} agent${instead}, said ${oneLine(by, 80)} ${agoText(at)}${said}\n`
}
