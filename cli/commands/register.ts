import { connect, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { printEntry } from '../terminal/entry-view.ts'
import { UsageError } from '../terminal/faults.ts'
import type { Io } from '../terminal/io.ts'

interface RegisterOptions extends ServerOptions {
  mcp?: true
  name?: string
  operator?: true
  json?: true
}

export default function registerCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('register'))
    .argument('<agent url>', 'address of the agent')
    .option('--mcp', 'the address is the endpoint of an MCP server: its tools become skills')
    .option(
      '--name <name>',
      'with --mcp: the name in the registry (default: the name that the server states)',
    )
    .option('--operator', 'register as the operator: the agent is admitted immediately')
    .option('--json', 'print the entry as JSON')
    .addHelpText(
      'after',
      `
The gateway at --url reads the card of the agent. An agent of Parley or Bindu (external) proves its key. Any other A2A
agent (foreign) is called through the relay of the gateway; npx parley check <agent url> shows what it accepts. An MCP
server (--mcp) is called through the relay too; npx parley check --mcp <agent url> shows its tools. The address must be
public, on this machine (not with NODE_ENV=production), or listed in REGISTRY_ALLOWED_HOSTS of the gateway. An agent
started with GATEWAY_URL registers itself. The next step is npx parley admit.`,
    )
    .members({ url: '' })
    .run((agent: string, options: RegisterOptions) => register(io, agent, options))
}

async function register(io: Io, agent: string, options: RegisterOptions): Promise<void> {
  if (options.name !== undefined && !options.mcp) throw new UsageError('--name is used together with --mcp.')
  const server = await connect(io, options, options.operator ? 'operator' : 'developer')
  const { body } = await server.send('POST', '/registry/agents', {
    url: agent,
    ...(options.mcp && { protocol: 'mcp' }),
    ...(options.name !== undefined && { name: options.name }),
  })
  printEntry(io, body, options.json)
}
