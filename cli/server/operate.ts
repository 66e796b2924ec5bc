import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { RpcError } from '@parley/client/internal/rpc-error'
import { readEntry } from '@parley/wire/codecs/parley/registry'
import { CliCommand } from '../terminal/cli-command.ts'
import { credentialOption, printEntry } from '../terminal/entry-view.ts'
import { CommandFailed } from '../terminal/faults.ts'
import { type Io, print, printJson, say } from '../terminal/io.ts'
import { oneLine, slugMax } from '../terminal/printable.ts'
import { textFrom } from './message.ts'
import { connect, type Method, type ServerOptions, slugOf, withServerOptions } from './server-connection.ts'

interface OperateOptions extends ServerOptions {
  reason?: string
  revision?: string
  own?: true
  credential?: string
  scheme?: string
  json?: true
}

export const whoMay = `
Operators only: pass a token with agent:admin by --token or PARLEY_TOKEN. Without one, the command uses the operator
client that the embedded OAuth server keeps in DATA_DIR.`

const aboutOwn = `
Add --revision to admit exactly the version that you reviewed.
Without --own, an agent of Parley or Bindu is external: the gateway does not query it for tasks, and sends it tokens (for
this agent only) if its card declares a bearer scheme. Use --own for agents that you run and that have proven their key:
the gateway then trusts their statements about tasks. Admit it again without --own to revoke this.`

const aboutCredential = `
A foreign A2A agent (any other) or MCP server is called through the relay. If its card requires a bearer token, an API key or OAuth2
client credentials (client-id:client-secret), it receives what --credential names, and never a caller's token. The
credential is stored encrypted and never shown. Admit the agent again to replace it.`

/** Reads a credential from the option, a file or standard input, without the line break at its end. */
async function credentialIn(io: Io, given: string | undefined): Promise<string | undefined> {
  if (given === undefined) return undefined
  const text = given === '-' ? await textFrom(io.stdin) : await valueIn(io, given)
  return text.replace(/\r?\n$/, '')
}

async function valueIn({ cwd }: Io, given: string): Promise<string> {
  if (!given.startsWith('@')) return given
  const file = path.resolve(cwd, given.slice(1))
  return readFile(file, 'utf8').catch((cause: unknown) => {
    throw new CommandFailed(`The file ${file} cannot be read.`, { cause })
  })
}

/** An operator command that acts on one registry entry. */
export function operatorCommand(io: Io, action: 'admit' | 'quarantine' | 'release'): CliCommand {
  const command = withServerOptions(new CliCommand(action))
    .argument('<agent>', 'name of the agent (npx parley agents)')
    .option('--json', 'print the entry as JSON')
    .addHelpText('after', whoMay)
  if (action === 'quarantine') command.option('--reason <text>', 'public reason')
  if (action === 'admit')
    command
      .option('--revision <text>', 'fail unless the entry still has this `revision`')
      .option('--own', 'this deployment runs the agent: the gateway trusts its statements about tasks')
      .option(
        '--credential <value>',
        'credential for a foreign A2A agent or MCP server: a value, @file, or - for standard input',
      )
      .option(
        '--scheme <name>',
        'with --credential: its scheme in the card, if it fits several; header:<name> for MCP servers',
      )
      .addHelpText('after', aboutOwn + aboutCredential)
  return command.run(async (agent: string, options: OperateOptions) => {
    const { reason, revision, own, scheme } = options
    const credential = await credentialIn(io, options.credential)
    const given = { reason, revision, own, credential, scheme }
    const isEmpty = Object.values(given).every((value) => value === undefined)
    // JSON.stringify omits undefined values.
    const body = isEmpty ? undefined : given
    const answer = await operate(io, options, { method: 'POST', path: `${slugOf(agent)}/${action}`, body })
    printEntry(io, answer.body, options.json)
    if (action !== 'admit' || credential !== undefined) return
    const option = credentialOption(readEntry(answer.body).relay)
    if (option !== '')
      say(
        io,
        `The agent requires a credential. If none is set: npx parley admit ${oneLine(agent, slugMax)}${option}`,
      )
  })
}

/** Removes an entry and all decisions about it from the registry. */
export function removeEntryCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('remove'))
    .argument('<agent>', 'name of the agent (npx parley agents)')
    .option('--json', 'print the answer as JSON')
    .addHelpText('after', whoMay)
    .run(async (agent: string, options: OperateOptions) => {
      const { body } = await operate(io, options, { method: 'DELETE', path: slugOf(agent) })
      if (options.json) printJson(io, body)
      else print(io, `${agent} is no longer registered.\n`)
    })
}

interface OperatorRequest {
  method: Method
  path: string
  body?: object | undefined
  headers?: Record<string, string>
}

/** Sends a request below `/registry/agents/` as the operator. */
export function operate(io: Io, options: ServerOptions, request: OperatorRequest) {
  return sendAsOperator(io, options, { ...request, path: `/registry/agents/${request.path}` })
}

/** Sends a request as the operator. */
export async function sendAsOperator(io: Io, options: ServerOptions, request: OperatorRequest) {
  const { method, path, body, headers } = request
  const server = await connect(io, options, 'operator')
  try {
    return await server.send(method, path, body, headers)
  } catch (error) {
    const lacksScope =
      error instanceof RpcError && error.code === -32013 && (error.data['reason'] ?? 'scope') === 'scope'
    if (!lacksScope) throw error
    throw new CommandFailed(
      'The token lacks the scope agent:admin. In the folder of the server, omit --token and PARLEY_TOKEN to use its operator client.',
    )
  }
}
