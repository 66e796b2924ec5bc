import { connect, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { printEntry } from '../terminal/entry-view.ts'
import type { Io } from '../terminal/io.ts'

interface RegisterOptions extends ServerOptions {
  operator?: true
  json?: true
}

export default function registerCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('register'))
    .argument('<agent url>', 'address of the agent')
    .option('--operator', 'as the operator: the agent is admitted at once')
    .option('--json', 'print the entry as JSON')
    .addHelpText(
      'after',
      `
The gateway at --url fetches card, skills and DID document from the agent, and asks it to prove its key. The address must be
public, on this machine (not with NODE_ENV=production), or named by the gateway's REGISTRY_ALLOWED_HOSTS. An agent with GATEWAY_URL registers by itself.`,
    )
    .run((agent: string, options: RegisterOptions) => register(io, agent, options))
}

async function register(io: Io, agent: string, options: RegisterOptions): Promise<void> {
  const server = await connect(io, options, options.operator ? 'operator' : 'developer')
  const { body } = await server.send('POST', '/registry/agents', { url: agent })
  printEntry(io, body, options.json)
}
