import path from 'node:path'
import { ExposedSecretFile, readSecretFile } from '@parley/kit/process/secret-file'
import { clientSettings } from '../server/environment.ts'
import { type IssuedToken, issueToken, readClient } from '../server/token-source.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { CommandFailed } from '../terminal/faults.ts'
import { type Io, print, printJson } from '../terminal/io.ts'

interface TokenOptions {
  scope?: string
  resource?: string
  initial?: true
  operator?: true
  json?: true
}

export default function tokenCommand(io: Io): CliCommand {
  return new CliCommand('token')
    .option('--scope <scopes>', 'scopes, separated by spaces (default: "agent:read agent:write")')
    .option(
      '--resource <address>',
      'address or DID of the one server that takes the token (default: every one)',
    )
    .option(
      '--initial',
      'print the initial access token, with which clients are registered at /oauth2/register',
    )
    .option('--operator', 'a token of the operator, with agent:admin')
    .option('--json', 'print the complete token response as JSON')
    .addHelpText(
      'after',
      '\nThe token belongs to the development client that the server wrote to DATA_DIR/dev-client.json.',
    )
    .run((options: TokenOptions) => printToken(io, options))
}

async function printToken(io: Io, options: TokenOptions): Promise<void> {
  const { dataDir } = clientSettings(io)
  if (options.initial) {
    const token = await initialAccessToken(dataDir)
    return options.json ? printJson(io, { initial_access_token: token }) : print(io, `${token}\n`)
  }
  if (options.operator) return printOperatorToken(io, options, dataDir)
  const client = await readClient(dataDir, 'developer')
  if (client === undefined) {
    throw new CommandFailed(
      `${dataDir} holds no dev-client.json. "npx parley up" writes one at its first start (not in production).`,
    )
  }
  printIssued(io, options, await issueToken(client, options.scope, options.resource))
}

async function printOperatorToken(io: Io, options: TokenOptions, dataDir: string): Promise<void> {
  const client = await readClient(dataDir, 'operator')
  if (client === undefined)
    throw new CommandFailed(
      `${dataDir} holds no oauth/operator-client.json: is the OAuth server another one?`,
    )
  printIssued(io, options, await issueToken(client, options.scope ?? 'agent:admin', options.resource))
}

function printIssued(io: Io, options: TokenOptions, issued: IssuedToken): void {
  if (options.json) printJson(io, issued)
  else print(io, `${issued.access_token}\n`)
}

async function initialAccessToken(dataDir: string): Promise<string> {
  const file = path.join(dataDir, 'oauth', 'initial-access-token')
  try {
    return (await readSecretFile(file)).trim()
  } catch (thrown) {
    if (thrown instanceof ExposedSecretFile) throw thrown
    const { code } = thrown as NodeJS.ErrnoException
    const why =
      code === 'ENOENT' ? 'is not there; the server writes it at its first start' : `cannot be read (${code})`
    throw new CommandFailed(`${file} ${why}.`)
  }
}
