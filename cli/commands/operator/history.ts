import { historyAnswer } from '@parley/wire/codecs/answers/operator/records'
import { entryAnswer } from '@parley/wire/codecs/answers/registry'
import { whoMay } from '../../server/operate.ts'
import { operatorApi, pathWith } from '../../server/operator-api.ts'
import { type ServerOptions, slugOf, withServerOptions } from '../../server/server-connection.ts'
import { CliCommand } from '../../terminal/cli-command.ts'
import { type Io, print, printJson, say } from '../../terminal/io.ts'
import { oneLine } from '../../terminal/printable.ts'

interface HistoryOptions extends ServerOptions {
  changes?: true
  limit: string
  cursor?: string
  json?: true
}

export default function historyCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('history'))
    .argument('<agent>', 'name of the agent (npx parley agents)')
    .option('--changes', 'show what changed in the card since an operator admitted the agent')
    .option('--limit <count>', 'number of changes', '50')
    .option('--cursor <cursor>', 'continue a list')
    .option('--json', 'print the answer of the gateway as JSON')
    .addHelpText(
      'after',
      `
Lists registrations, admissions, failures, ejections, quarantines and changes of the card, newest first.
${whoMay}`,
    )
    .members({ limit: '--limit' })
    .run((agent: string, options: HistoryOptions) =>
      options.changes ? changes(io, slugOf(agent), options) : list(io, slugOf(agent), options),
    )
}

async function list(
  io: Io,
  agent: string,
  { json, limit, cursor, ...options }: HistoryOptions,
): Promise<void> {
  const api = await operatorApi(io, options)
  const page = await api.send(historyAnswer, pathWith(`/operator/agents/${agent}/history`, { limit, cursor }))
  if (json) return printJson(io, page)
  for (const { at, kind, by, reason } of page.history) {
    const whom = by === null ? '' : ` by ${oneLine(by, 120)}`
    const why = reason === null ? '' : `: ${oneLine(reason, 300)}`
    print(io, `${at.slice(0, 19)}Z ${kind.replace('_', ' ')}${whom}${why}\n`)
  }
  if (page.history.length === 0) print(io, 'No changes are recorded.\n')
  if (page.next_cursor !== null) say(io, `More: add --cursor ${page.next_cursor}`)
}

async function changes(io: Io, agent: string, options: HistoryOptions): Promise<void> {
  const api = await operatorApi(io, options)
  const entry = await api.send(entryAnswer, `/registry/agents/${agent}`)
  const { revision, admitted_revision: admitted, admitted_at: at, card_changes: all } = entry
  if (options.json)
    return printJson(io, { revision, admitted_revision: admitted, admitted_at: at, card_changes: all })
  const since = at === null ? 'its first registration' : `its admission at ${at.slice(0, 19)}Z`
  if (all.length === 0) return print(io, `The card is unchanged since ${since}.\n`)
  print(io, `${all.length} changes since ${since}:\n`)
  for (const { at: when, field, before, after } of all) {
    print(io, `${when.slice(0, 19)}Z ${oneLine(field, 200)}\n`)
    print(io, `  - ${oneLine(JSON.stringify(before), 400)}\n  + ${oneLine(JSON.stringify(after), 400)}\n`)
  }
  if (admitted !== revision)
    say(io, `Accept them: npx parley admit ${agent} --revision ${oneLine(revision, 60)}`)
}
