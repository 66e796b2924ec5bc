import { RpcError } from '@parley/client/internal/rpc-error'
import { CliCommand } from '../terminal/cli-command.ts'
import { printEntry } from '../terminal/entry-view.ts'
import { CommandFailed } from '../terminal/faults.ts'
import { type Io, print, printJson } from '../terminal/io.ts'
import { connect, type ServerOptions, slugOf, withServerOptions } from './server-connection.ts'

interface OperateOptions extends ServerOptions {
  reason?: string
  revision?: string
  own?: true
  json?: true
}

const whoMay = `
It is for the operator: with --token or PARLEY_TOKEN a token with agent:admin, else one of the client that the embedded
OAuth server keeps for whoever has its folder.`

const whoseToken = `
Without --own the agent is external: it receives only tokens whose audience names it (npx parley token --resource …).
--own is for agents that you run: it can act for its callers with their tokens. It needs an agent that has proven its
key; add --revision, so that it is the one that you looked at. A later admit without --own takes it back.`

/** A command of the operator on one entry of the registry. */
export function operatorCommand(io: Io, action: 'admit' | 'quarantine' | 'release'): CliCommand {
  const command = withServerOptions(new CliCommand(action))
    .argument('<agent>', 'name of the agent (npx parley agents)')
    .option('--json', 'print the entry as JSON')
    .addHelpText('after', whoMay)
  if (action === 'quarantine') command.option('--reason <text>', 'why; others see it')
  if (action === 'admit')
    command
      .option('--revision <text>', 'only if it is still what was looked at: `revision` of the entry')
      .option('--own', 'this deployment runs the agent: callers’ tokens are forwarded to it')
      .addHelpText('after', whoseToken)
  return command.run(async (agent: string, options: OperateOptions) => {
    const { reason, revision, own } = options
    const given = { reason, revision, own }
    const isEmpty = Object.values(given).every((value) => value === undefined)
    // JSON leaves out what is undefined.
    const body = isEmpty ? undefined : given
    printEntry(io, await operate(io, options, 'POST', `${slugOf(agent)}/${action}`, body), options.json)
  })
}

/** Takes an entry out of the registry, with all that was decided about it. */
export function removeEntryCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('remove'))
    .argument('<agent>', 'name of the agent (npx parley agents)')
    .option('--json', 'print the answer as JSON')
    .addHelpText('after', whoMay)
    .run(async (agent: string, options: OperateOptions) => {
      const body = await operate(io, options, 'DELETE', slugOf(agent))
      if (options.json) printJson(io, body)
      else print(io, `${agent} is no longer registered.\n`)
    })
}

async function operate(
  io: Io,
  options: OperateOptions,
  method: 'POST' | 'DELETE',
  path: string,
  body?: object,
): Promise<unknown> {
  const server = await connect(io, options, 'operator')
  try {
    return (await server.send(method, `/registry/agents/${path}`, body)).body
  } catch (error) {
    if (!(error instanceof RpcError) || error.code !== -32013) throw error
    throw new CommandFailed(
      'The token has no scope agent:admin. Where the server was started, leave out --token and PARLEY_TOKEN: its operator is known there.',
    )
  }
}
