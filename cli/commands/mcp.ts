import path from 'node:path'
import { type McpAddresses, mcpHosts } from '../mcp/hosts.ts'
import { clientSettings } from '../server/environment.ts'
import { connect, type ServerOptions, slugOf, withServerOptions } from '../server/server-connection.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { UsageError } from '../terminal/faults.ts'
import { type Io, print, printJson } from '../terminal/io.ts'

interface McpOptions extends ServerOptions {
  agent?: string
  host?: string
  stdio?: true
  json?: true
}

export default function mcpCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('mcp'))
    .option('--agent <agent>', 'the MCP server of one agent instead of the one with every agent')
    .option('--host <name>', `only the configuration of this host: ${Object.keys(mcpHosts).join(', ')}`)
    .option('--stdio', 'act as a local MCP server that passes all messages to the gateway')
    .option('--json', 'print the addresses as JSON')
    .addHelpText(
      'after',
      `
Prints the address of the gateway's MCP server and the configuration of common hosts. A host that is configured with the
address opens the approval page in a browser. A host that starts "parley mcp --stdio" uses the token of --token,
PARLEY_TOKEN or DATA_DIR, like the other commands.`,
    )
    .run((options: McpOptions) => (options.stdio ? runBridge(io, options) : printHosts(io, options)))
}

async function runBridge(io: Io, options: McpOptions): Promise<void> {
  if (options.host !== undefined || options.json) throw new UsageError('--stdio excludes --host and --json.')
  const { bridgeStdio } = await import('../mcp/stdio-bridge.ts')
  // In production, MCP servers refuse tokens without an audience.
  const { url, token } = await connect(io, options, 'developer', true)
  await bridgeStdio(io, { url: `${url}${pathOf(options)}`, token })
}

const pathOf = ({ agent }: McpOptions) => (agent === undefined ? '/mcp' : `/agents/${slugOf(agent)}/mcp`)

async function printHosts(io: Io, options: McpOptions): Promise<void> {
  const base = (await connect(io, options)).url
  const url = `${base}${pathOf(options)}`
  const command = commandOf(io, options, base)
  if (options.json) return printJson(io, { url, stdio: command })
  if (options.host !== undefined)
    return print(io, `${hostOf(options.host).configuration({ url, command })}\n`)
  print(io, `MCP server: ${url}\n`)
  for (const { title, file, configuration } of Object.values(mcpHosts)) {
    print(io, `\n${title}${file === undefined ? '' : `: ${file}`}\n`)
    print(io, `${configuration({ url, command })}\n`)
  }
}

function hostOf(name: string) {
  const host = Object.hasOwn(mcpHosts, name) ? mcpHosts[name] : undefined
  if (host !== undefined) return host
  throw new UsageError(`--host must be one of ${Object.keys(mcpHosts).join(', ')}, not "${name}".`)
}

/** The command that a host starts. All paths are absolute, because hosts start it in any folder. */
function commandOf(io: Io, { agent }: McpOptions, url: string): McpAddresses['command'] {
  const [node = 'node', bin = 'parley'] = process.argv
  const which = agent === undefined ? [] : ['--agent', agent]
  return {
    command: node,
    args: [path.resolve(bin), 'mcp', '--stdio', '--url', url, ...which],
    env: { DATA_DIR: clientSettings(io).dataDir },
  }
}
