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
    .option('--operator', 'register as the operator: the agent is admitted immediately')
    .option('--json', 'print the entry as JSON')
    .addHelpText(
      'after',
      `
The gateway at --url reads the card of the agent. An agent of Parley or Bindu (external) proves its key. Any other A2A
agent (foreign) is called through the relay of the gateway; npx parley check <agent url> shows what it accepts. The
address must be public, on this machine (not with NODE_ENV=production), or listed in REGISTRY_ALLOWED_HOSTS of the
gateway. An agent started with GATEWAY_URL registers itself. The next step is npx parley admit.`,
    )
    .members({ url: '' })
    .run((agent: string, options: RegisterOptions) => register(io, agent, options))
}

async function register(io: Io, agent: string, options: RegisterOptions): Promise<void> {
  const server = await connect(io, options, options.operator ? 'operator' : 'developer')
  const { body } = await server.send('POST', '/registry/agents', { url: agent })
  printEntry(io, body, options.json)
}
