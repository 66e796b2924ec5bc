import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { CliCommand } from '../cli-command.ts'
import { clientSettings } from '../environment.ts'
import { CommandFailed } from '../faults.ts'
import { type Io, print, printJson } from '../io.ts'
import { issueToken, readDevClient } from '../token-source.ts'

interface TokenOptions {
  scope?: string
  initial?: true
  json?: true
}

export default function tokenCommand(io: Io): CliCommand {
  return new CliCommand('token')
    .option('--scope <scopes>', 'scopes, divided by spaces (default: "agent:read agent:write")')
    .option(
      '--initial',
      'print the initial access token, with which clients are registered at /oauth2/register',
    )
    .option('--json', 'print the whole answer of the token server as JSON')
    .addHelpText(
      'after',
      '\nThe token is one of the development client that the server wrote to DATA_DIR/dev-client.json.',
    )
    .run((options: TokenOptions) => printToken(io, options))
}

async function printToken(io: Io, options: TokenOptions): Promise<void> {
  const { dataDir } = clientSettings(io)
  if (options.initial) {
    const token = await initialAccessToken(dataDir)
    return options.json ? printJson(io, { initial_access_token: token }) : print(io, `${token}\n`)
  }
  const client = await readDevClient(dataDir)
  if (client === undefined) {
    throw new CommandFailed(
      `${dataDir} holds no dev-client.json. "npx parley up" writes one at its first start (not in production).`,
    )
  }
  const issued = await issueToken(client, options.scope)
  if (options.json) printJson(io, issued)
  else print(io, `${issued.access_token}\n`)
}

async function initialAccessToken(dataDir: string): Promise<string> {
  const file = path.join(dataDir, 'oauth', 'initial-access-token')
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException
    const why =
      code === 'ENOENT' ? 'is not there; the server writes it at its first start' : `cannot be read (${code})`
    throw new CommandFailed(`${file} ${why}.`)
  }
}
