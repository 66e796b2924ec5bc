import { InvalidArgumentError, Option } from 'commander'
import { searchAt } from '../server/ard-server.ts'
import { connect, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { entriesIn, nextCommand, printEntries } from '../terminal/catalog-view.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { type Io, print, printJson } from '../terminal/io.ts'
import { oneLine } from '../terminal/printable.ts'

interface SearchOptions extends ServerOptions {
  at?: string
  type?: keyof typeof types
  limit: number
  json?: true
}

const types = { a2a: 'application/a2a-agent-card+json', mcp: 'application/mcp-server-card+json' }

export default function searchCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('search'))
    .argument('<text>', 'what the agent should be able to do')
    .option('--at <url>', 'search another server that speaks ARD, without a token')
    .addOption(new Option('--type <type>', 'only A2A agents or only MCP servers').choices(Object.keys(types)))
    .option('--limit <count>', 'maximum number of results, 1 to 100', count, 20)
    .option('--json', 'print the server’s answer as JSON')
    .addHelpText(
      'after',
      `
SCORE is from 0 to 100: how well the skills match the text, as the searched server computes it. It is no statement about
trust. npx parley negotiate also considers load, price and file types of the agents of your gateway. The address for --at
is the base of the API of the server, or a domain with a manifest (/.well-known/ard.json) that names it.

Exit codes: 0 something was found; 1 nothing was found; 2 incorrect usage.`,
    )
    .members({ 'query.text': '<text>', text: '<text>', pageSize: '--limit' })
    .run((text: string, options: SearchOptions) => search(io, text, options))
}

async function search(io: Io, text: string, options: SearchOptions): Promise<number> {
  const { at, type, limit } = options
  const question = {
    query: { text, ...(type && { filter: { type: [types[type]] } }) },
    pageSize: limit,
    ...(at !== undefined && { federation: 'referrals' }),
  }
  const body =
    at === undefined
      ? (await (await connect(io, options)).send('POST', '/search', question)).body
      : await searchAt(at, question)
  const { entries, referrals } = entriesIn(body)
  const [first] = entries
  if (options.json) printJson(io, body)
  else if (first === undefined) print(io, 'Nothing was found.\n')
  else {
    printEntries(io, entries)
    const next = nextCommand(first, at === undefined)
    if (next !== undefined) print(io, `\nNext: ${next}\n`)
  }
  if (!options.json)
    for (const { url = '' } of referrals.slice(0, 10)) print(io, `Another registry: --at ${oneLine(url)}\n`)
  return first === undefined ? 1 : 0
}

function count(text: string): number {
  const value = /^\d{1,3}$/.test(text) ? Number(text) : 0
  if (value < 1 || value > 100) throw new InvalidArgumentError('It is not a number from 1 to 100.')
  return value
}
