import { type ReadEntry, readEntry, readEntryList } from '@parley/wire/codecs/parley/registry'
import { connect, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { dialectTitle, skillName } from '../terminal/entry-view.ts'
import { type Io, print, printJson } from '../terminal/io.ts'
import { oneLine, slugMax } from '../terminal/printable.ts'
import { table } from '../terminal/table.ts'

interface AgentsOptions extends ServerOptions {
  query?: string
  skill?: string
  tag?: string
  status?: string
  json?: true
}

const pageSize = 200
const pagesMax = 100

export default function agentsCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('agents'))
    .option('--query <text>', 'only agents with these words in name, description or skills')
    .option('--skill <id>', 'only agents with this skill')
    .option('--tag <tag>', 'only agents with a skill of this tag')
    .option('--status <status>', 'only agents with this status: starting, ready, unreachable')
    .option('--json', 'print the registry’s answer as JSON')
    .addHelpText(
      'after',
      `
STATUS also names agents that are not admitted or quarantined. A "relayed" agent is a foreign A2A server or an MCP server
that the gateway calls through its relay, in the version in parentheses; npx parley task and npx parley watch work for it
as for any other.`,
    )
    .run((options: AgentsOptions) => listAgents(io, options))
}

async function listAgents(io: Io, options: AgentsOptions): Promise<void> {
  const agents = await allAgents(io, options)
  if (options.json) return printJson(io, { agents, total: agents.length })
  if (agents.length === 0) return print(io, 'No agents.\n')
  const rows = agents
    .map(readEntry)
    .map((agent) => [
      oneLine(agent.slug ?? '', slugMax),
      oneLine(statusOf(agent), 60),
      oneLine((agent.skills ?? []).map(skillName).join(', '), 60),
      oneLine(agent.url ?? '', 120),
    ])
  print(io, table([['AGENT', 'STATUS', 'SKILLS', 'ADDRESS'], ...rows]))
}

function statusOf({ status = '', admitted, quarantined, relay }: ReadEntry): string {
  const set = [
    ...(admitted === false ? ['not admitted'] : []),
    ...(quarantined === true ? ['quarantined'] : []),
    ...(relay === undefined ? [] : [`relayed (${dialectTitle(relay)})`]),
  ]
  return [status, ...set].join(', ')
}

async function allAgents(io: Io, options: AgentsOptions): Promise<unknown[]> {
  const server = await connect(io, options)
  const { query: q, skill, tag, status } = options
  const filters = Object.entries({ q, skill, tag, status }).filter(([, value]) => value !== undefined)
  const agents: unknown[] = []
  let cursor: string | undefined
  for (let count = 0; count < pagesMax; count += 1) {
    const place = cursor === undefined ? {} : { cursor }
    const query = new URLSearchParams({ ...Object.fromEntries(filters), ...place, limit: String(pageSize) })
    const { body, headers } = await server.getJson(`/registry/agents?${query.toString()}`)
    const page = readEntryList(body)
    agents.push(...page.agents)
    const next = page.nextCursor ?? headers.get('x-next-cursor') ?? undefined
    if (next === undefined || next === cursor) break
    cursor = next
  }
  return agents
}
