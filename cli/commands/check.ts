import { checkAgent, type Finding } from '../server/check-agent.ts'
import { checkMcpServer } from '../server/check-mcp-server.ts'
import { clientSettings, minScoreOf } from '../server/environment.ts'
import { tokenSource } from '../server/token-source.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { UsageError } from '../terminal/faults.ts'
import { type Io, print, printJson } from '../terminal/io.ts'
import { oneLine } from '../terminal/printable.ts'

interface CheckOptions {
  registry?: string
  token?: string
  mcp?: true
  json?: true
}

export default function checkCommand(io: Io): CliCommand {
  return new CliCommand('check')
    .argument('<agent url>', 'address of the agent')
    .option(
      '--token <token>',
      'also send one task with this token (default: a token of the development client, for its own server only)',
    )
    .option(
      '--registry <url>',
      'gateway at which the examples of the skills are tried (default: PUBLIC_URL, else http://HOST:PORT)',
    )
    .option('--mcp', 'the address is the endpoint of an MCP server: shows its tools, and calls none')
    .option('--json', 'print the findings as JSON')
    .addHelpText(
      'after',
      `
Checks the agent and prints one line per check: ok, – (a remark) or FIX with what to change.

For an A2A agent of another vendor, it shows the interface and the scheme that the gateway will use. --token is then a
credential of the agent, with which a task that does not exist is read. No message is sent.

If a gateway answers, up to 20 examples of the skills are negotiated there, without a token. Each line shows which agent would
get the example as a message. It is a remark if that is another agent or none. Nothing is sent to agents.

For an MCP server (--mcp), it shows the tools that npx parley register --mcp would register as skills.

Exit codes: 0 all checks passed; 1 a check failed; 2 incorrect usage.`,
    )
    .run((url: string, options: CheckOptions) => check(io, url, options))
}

async function check(io: Io, url: string, options: CheckOptions): Promise<number> {
  requireHttp(url, 'It')
  if (options.registry !== undefined) requireHttp(options.registry, '--registry')
  if (options.mcp) return report(io, await checkMcpServer(url, options.token), options.json)
  // PARLEY_TOKEN belongs to the configured server and must not be sent to an arbitrary address.
  const { dataDir, url: server } = clientSettings(io)
  const token = await tokenSource({ dataDir, token: options.token, url, as: 'developer' })
  const bearer = await token?.().catch(() => undefined)
  const { findings, agent } = await checkAgent(url, bearer, options.token)
  if (agent !== undefined) {
    const { checkExamples } = await import('../server/check-examples.ts')
    const gateway = (options.registry ?? server).replace(/\/+$/, '')
    findings.push(...(await checkExamples({ agent, gateway, minScore: minScoreOf(io) })))
  }
  return report(io, findings, options.json)
}

function requireHttp(url: string, name: string): void {
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ''))
    throw new UsageError(`${name} must be an http or https address, not "${url}".`)
}

function report(io: Io, findings: readonly Finding[], json: true | undefined): number {
  if (json) printJson(io, findings)
  else {
    for (const { what, fix, note, info } of findings) {
      const mark = fix === undefined ? (note === undefined ? 'ok  ' : '–   ') : 'FIX '
      print(
        io,
        `${mark}  ${what.padEnd(16)}  ${oneLine(fix ?? note ?? info ?? '', 400)}`.trimEnd().concat('\n'),
      )
    }
  }
  return findings.some(({ fix }) => fix !== undefined) ? 1 : 0
}
