import { overviewAnswer } from '@parley/wire/codecs/answers/operator/console'
import type { z } from 'zod'
import { whoMay } from '../../server/operate.ts'
import { operatorApi } from '../../server/operator-api.ts'
import { type ServerOptions, withServerOptions } from '../../server/server-connection.ts'
import { CliCommand } from '../../terminal/cli-command.ts'
import { type Io, print, printJson } from '../../terminal/io.ts'
import { oneLine } from '../../terminal/printable.ts'
import { table } from '../../terminal/table.ts'

interface OverviewOptions extends ServerOptions {
  json?: true
}

type Overview = z.output<typeof overviewAnswer>
const agentsMax = 30
const callsMax = 15

export default function overviewCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('overview'))
    .option('--json', 'print the answer of the gateway as JSON')
    .addHelpText(
      'after',
      `
Shows what needs attention, the agents with their health and load, and the calls between them in the last minutes.
${whoMay}`,
    )
    .run(async (options: OverviewOptions) => {
      const api = await operatorApi(io, options)
      const overview = await api.send(overviewAnswer, '/operator/overview')
      if (options.json) printJson(io, overview)
      else print(io, textOf(overview))
    })
}

function textOf(overview: Overview): string {
  const { attention, agents, agents_total: total, tasks, calls, window_minutes: minutes } = overview
  const isHint = (kind: string) => kind === 'agent_not_configured'
  const needed = attention.map(
    ({ kind, text, command }) =>
      `${isHint(kind) ? '·' : '!'} ${oneLine(text, 300)}\n  ${oneLine(command, 200)}\n`,
  )
  const isQuiet = attention.every(({ kind }) => isHint(kind))
  const counts = Object.entries(tasks).map(([state, count]) => `${count} ${oneLine(state, 40)}`)
  const callRows = calls
    .slice(0, callsMax)
    .map(({ from, to, count, errors, p50_ms: ms }) => [
      oneLine(from, 24),
      oneLine(to, 24),
      String(count),
      String(errors),
      msText(ms),
    ])
  return [
    `${isQuiet ? 'Nothing needs attention.\n' : ''}${needed.join('')}`,
    `\n${total} agents; tasks: ${counts.join(', ')}\n`,
    agents.length === 0
      ? 'Start agents with npx parley up, or register one with npx parley register.\n'
      : agentTable(agents.slice(0, agentsMax)),
    callRows.length === 0
      ? ''
      : `\nCalls of the last ${minutes} minutes\n${table([['FROM', 'TO', 'CALLS', 'ERRORS', 'MEDIAN'], ...callRows])}`,
  ].join('')
}

function agentTable(agents: Overview['agents']): string {
  const rows = agents.map((agent) => [
    oneLine(agent.agent, 24),
    agent.quarantined ? 'quarantined' : agent.admitted ? agent.status : 'not admitted',
    text(agent.queue_depth),
    text(agent.active_tasks),
    msText(agent.latency_p50_ms),
    agent.success_share === null ? '-' : `${Math.round(agent.success_share * 100)} %`,
  ])
  return table([['AGENT', 'STATUS', 'QUEUE', 'ACTIVE', 'MEDIAN', 'SUCCESS'], ...rows])
}

const text = (count: number | null) => (count === null ? '-' : String(count))
const msText = (ms: number | null) => (ms === null ? '-' : `${Math.round(ms)} ms`)
