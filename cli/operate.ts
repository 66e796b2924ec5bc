import { CliCommand } from './cli-command.ts'
import { printEntry } from './entry-view.ts'
import { type Io, print, printJson } from './io.ts'
import { connect, type ServerOptions, slugOf, withServerOptions } from './server-connection.ts'

interface OperateOptions extends ServerOptions {
  reason?: string
  json?: true
}

const whoMay = `
It is for the operator: with --token or PARLEY_TOKEN a token with agent:admin, else one of the client that the embedded
OAuth server keeps for whoever has its folder.`

/** A command of the operator on one entry of the registry. */
export function operatorCommand(io: Io, action: 'admit' | 'quarantine' | 'release'): CliCommand {
  const command = withServerOptions(new CliCommand(action))
    .argument('<agent>', 'name of the agent (npx parley agents)')
    .option('--json', 'print the entry as JSON')
    .addHelpText('after', whoMay)
  if (action === 'quarantine') command.option('--reason <text>', 'why; others see it')
  return command.run(async (agent: string, options: OperateOptions) => {
    const server = await connect(io, options, 'operator')
    const body = options.reason === undefined ? undefined : { reason: options.reason }
    const answer = await server.send('POST', `/registry/agents/${slugOf(agent)}/${action}`, body)
    printEntry(io, answer.body, options.json)
  })
}

/** Takes an entry out of the registry, with all that was decided about it. */
export function removeEntryCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('remove'))
    .argument('<agent>', 'name of the agent (npx parley agents)')
    .option('--json', 'print the answer as JSON')
    .addHelpText('after', whoMay)
    .run(async (agent: string, options: OperateOptions) => {
      const server = await connect(io, options, 'operator')
      const { body } = await server.send('DELETE', `/registry/agents/${slugOf(agent)}`)
      if (options.json) printJson(io, body)
      else print(io, `${agent} is no longer registered.\n`)
    })
}
