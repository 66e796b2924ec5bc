import path from 'node:path'
import { ExposedSecretFile, readSecretFile } from '@parley/kit/process/secret-file'
import { newKeyOut, readNewKey } from '@parley/wire/codecs/parley/clients'
import { keyLifetime } from '@parley/wire/model/oauth-client'
import { clientSettings } from '../server/environment.ts'
import { connect, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { type IssuedToken, issueToken, readClient } from '../server/token-source.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { CommandFailed, UsageError } from '../terminal/faults.ts'
import { type Io, print, printJson, say } from '../terminal/io.ts'
import { lifetimeOf } from '../terminal/lifetime.ts'
import { oneLine } from '../terminal/printable.ts'

interface TokenOptions extends ServerOptions {
  scope?: string
  resource?: string
  initial?: true
  signInCode?: true
  operator?: true
  longLived?: true
  name?: string
  expires?: string
  client?: string
  admin?: true
  json?: true
}

export default function tokenCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('token'))
    .option('--scope <scopes>', 'scopes, separated by spaces (default: "agent:read agent:write")')
    .option(
      '--resource <address>',
      'address or DID of the one server that takes the token (default: every one)',
    )
    .option(
      '--initial',
      'print the initial access token, with which clients are registered at /oauth2/register',
    )
    .option(
      '--sign-in-code',
      'print the code with which you approve an application, for example an MCP host, in the browser',
    )
    .option('--operator', 'a token of the operator, with agent:admin')
    .option('--long-lived', 'create a key (plk_…) for a program that cannot use OAuth; it is printed once')
    .option('--name <text>', '--long-lived: a name by which you recognize the key')
    .option('--expires <duration>', '--long-lived: lifetime, for example 30d (default: 90d, at most 365d)')
    .option('--client <id>', '--long-lived: the client that gets the key (operator; default: your own)')
    .option('--admin', '--long-lived: confirm a key of the operator with agent:admin, for at most 90d')
    .option('--json', 'print the complete token response as JSON')
    .addHelpText(
      'after',
      `
The token belongs to the development client that the server wrote to DATA_DIR/dev-client.json. --url and --token apply
to --long-lived only. List and revoke keys with npx parley clients keys and npx parley clients revoke-key.`,
    )
    .members({ lifetimeSeconds: '--expires' })
    .run((options: TokenOptions) => printToken(io, options))
}

async function printToken(io: Io, options: TokenOptions): Promise<void> {
  requireKeyOptions(options)
  if (options.longLived) return printKey(io, options)
  const { dataDir } = clientSettings(io)
  if (options.signInCode) {
    const code = await oauthSecret(dataDir, 'sign-in-code')
    return options.json ? printJson(io, { sign_in_code: code }) : print(io, `${code}\n`)
  }
  if (options.initial) {
    const token = await oauthSecret(dataDir, 'initial-access-token')
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

/** @throws UsageError */
function requireKeyOptions({ longLived, initial, operator, signInCode, ...options }: TokenOptions): void {
  const { name, scope, expires, client, admin, url, token } = options
  if (longLived) {
    if (initial || operator || signInCode)
      throw new UsageError('--long-lived excludes --initial, --operator and --sign-in-code.')
    if (scope?.split(' ').includes('agent:admin') && !admin)
      throw new UsageError('A key with agent:admin acts as the operator: confirm it with --admin.')
  } else if ([name, expires, client, admin, url, token].some((option) => option !== undefined)) {
    throw new UsageError('--name, --expires, --client, --admin, --url and --token belong to --long-lived.')
  }
}

async function printKey(io: Io, options: TokenOptions): Promise<void> {
  const { name, scope, resource, expires, client, admin } = options
  const lifetimeMax = scope?.split(' ').includes('agent:admin') ? keyLifetime.maxOfOperator : keyLifetime.max
  const lifetimeSeconds = expires === undefined ? undefined : lifetimeOf(expires, lifetimeMax)
  const isOperators = client !== undefined || admin
  const server = await connect(io, options, isOperators ? 'operator' : 'developer', !isOperators)
  const body = newKeyOut({ name, client, scope, resource, lifetimeSeconds, admin })
  const answer = (await server.send('POST', '/client-keys', body)).body
  if (options.json) return printJson(io, answer)
  const { key, details } = readNewKey(answer)
  print(io, `${key}\n`)
  const until = details.expiresAt?.slice(0, 10) ?? ''
  say(
    io,
    `Key ${details.id} of ${details.client} with ${details.scope}, until ${until}. It is not shown again.`,
  )
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
  const granted = issued.scope.split(' ')
  const missing = options.scope?.split(' ').filter((scope) => scope !== '' && !granted.includes(scope)) ?? []
  if (issued.scope !== '' && missing.length > 0)
    say(io, `The token server did not grant ${oneLine(missing.join(', '), 200)}.`)
  if (options.json) printJson(io, issued)
  else print(io, `${issued.access_token}\n`)
}

async function oauthSecret(dataDir: string, name: 'initial-access-token' | 'sign-in-code'): Promise<string> {
  const file = path.join(dataDir, 'oauth', name)
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
