import {
  accountAnswer,
  accountListAnswer,
  consoleSessionListAnswer,
  createdAccountAnswer,
} from '@parley/wire/codecs/answers/operator/console'
import type { z } from 'zod'
import { sendAsOperator, whoMay } from '../server/operate.ts'
import { type Method, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { UsageError } from '../terminal/faults.ts'
import { type Io, print, printJson } from '../terminal/io.ts'
import { oneLine } from '../terminal/printable.ts'
import { table } from '../terminal/table.ts'

interface OperatorsOptions extends ServerOptions {
  role?: string
  client?: string
  json?: true
}

const help = `
Actions:
  (none), list                list the people who may sign in to the console
  add <name>                  add an account and print its password, which is shown only once
  reset-password <name>       print a new password; the sessions of the account end
  disable <name>              end the sessions of the account and refuse its password
  enable <name>               accept the password of a disabled account again
  remove <name>               remove the account with its sessions and its own OAuth client
  sessions                    list the open sessions
  revoke <session id>         end a session

An operator sees and manages everything. A caller sees the tasks of its own client only: --client binds it to an existing
client, such as that of its programs. Otherwise, each account has a separate client, also if its name was used before.`

const actions = [
  'list',
  'add',
  'reset-password',
  'disable',
  'enable',
  'remove',
  'sessions',
  'revoke',
] as const
type Action = (typeof actions)[number]

export default function operatorsCommand(io: Io): CliCommand {
  return withServerOptions(new CliCommand('operators'))
    .argument('[action]', actions.join(', '))
    .argument('[name]', 'name of an account, or id of a session')
    .option('--role <role>', 'add: operator (default) or caller')
    .option('--client <id>', 'add: the existing client for which a caller acts')
    .option('--json', 'print the answer of the gateway as JSON')
    .addHelpText('after', help + whoMay)
    .members({ name: '<name>', role: '--role', client_id: '--client' })
    .run((action: string | undefined, name: string | undefined, options: OperatorsOptions) =>
      run(io, options, action ?? 'list', name),
    )
}

async function run(
  io: Io,
  options: OperatorsOptions,
  given: string,
  name: string | undefined,
): Promise<void> {
  const action = actions.find((one) => one === given)
  if (action === undefined) throw new UsageError(`"${given}" is not an action: use ${actions.join(', ')}.`)
  const { role, client } = options
  if (action !== 'add' && (role !== undefined || client !== undefined))
    throw new UsageError('--role and --client belong to add.')
  if (action === 'list' || action === 'sessions') {
    if (name !== undefined) throw new UsageError(`${action} takes no further arguments.`)
    return action === 'list' ? list(io, options) : listSessions(io, options)
  }
  if (name === undefined)
    throw new UsageError(
      `${action} takes the ${action === 'revoke' ? 'id of a session' : 'name of an account'}.`,
    )
  if (action === 'add') return add(io, options, name)
  return change(io, options, action, name)
}

async function list(io: Io, options: OperatorsOptions): Promise<void> {
  const body = await request(io, options, 'GET', '/operator/accounts')
  if (options.json) return printJson(io, body)
  const { accounts } = accountListAnswer.parse(body)
  if (accounts.length === 0) return print(io, 'No accounts: npx parley operators add <name> adds one.\n')
  const rows = accounts.map((account) => [
    oneLine(account.name, 63),
    account.disabled ? `${account.role}, disabled` : account.role,
    oneLine(account.client_id, 90),
    minuteOf(account.last_sign_in) ?? 'never',
  ])
  print(io, table([['NAME', 'ROLE', 'CLIENT', 'LAST SIGN-IN (UTC)'], ...rows]))
}

async function listSessions(io: Io, options: OperatorsOptions): Promise<void> {
  const body = await request(io, options, 'GET', '/operator/sessions')
  if (options.json) return printJson(io, body)
  const { sessions } = consoleSessionListAnswer.parse(body)
  if (sessions.length === 0) return print(io, 'No open sessions.\n')
  const rows = sessions.map((session) => [
    oneLine(session.id, 20),
    oneLine(session.name, 20),
    minuteOf(session.last_seen) ?? '',
    oneLine(session.address ?? '', 39),
  ])
  print(io, table([['SESSION', 'NAME', 'LAST REQUEST (UTC)', 'ADDRESS'], ...rows]))
}

async function add(io: Io, options: OperatorsOptions, name: string): Promise<void> {
  const { role = 'operator', client } = options
  if (role !== 'operator' && role !== 'caller') throw new UsageError('--role is operator or caller.')
  if (role === 'operator' && client !== undefined)
    throw new UsageError('An operator has a client of its own: use --client with --role caller.')
  const account = { name, role, ...(client !== undefined && { client_id: client }) }
  printPassword(io, options, await request(io, options, 'POST', '/operator/accounts', account))
}

async function change(
  io: Io,
  options: OperatorsOptions,
  action: Exclude<Action, 'list' | 'sessions' | 'add'>,
  name: string,
): Promise<void> {
  const path = `/operator/accounts/${encodeURIComponent(name)}`
  if (action === 'reset-password')
    return printPassword(io, options, await request(io, options, 'POST', `${path}/password`))
  if (action === 'disable' || action === 'enable') {
    const body = await request(io, options, 'POST', path, { disabled: action === 'disable' })
    if (options.json) return printJson(io, body)
    const { disabled } = accountAnswer.parse(body)
    return print(io, `${oneLine(name, 63)} is ${disabled ? 'disabled' : 'enabled'}.\n`)
  }
  const at = action === 'remove' ? path : `/operator/sessions/${encodeURIComponent(name)}`
  const body = await request(io, options, 'DELETE', at)
  if (options.json) printJson(io, body)
  else print(io, `${oneLine(name, 63)} is ${action === 'remove' ? 'removed' : 'ended'}.\n`)
}

function printPassword(io: Io, { json }: OperatorsOptions, body: unknown): void {
  if (json) return printJson(io, body)
  const account = createdAccountAnswer.parse(body)
  print(io, linesOf(account))
}

function linesOf({ name, role, client_id, password }: z.output<typeof createdAccountAnswer>): string {
  const rows = [
    ['account', name],
    ['role', role],
    ['client', client_id],
    ['password', password],
  ]
  const lines = rows.map(([title = '', value = '']) => `${title.padEnd(10)}${oneLine(value, 200)}\n`)
  return `${lines.join('')}The password is not shown again. Sign in at /console/ of the gateway.\n`
}

async function request(
  io: Io,
  options: ServerOptions,
  method: Method,
  path: string,
  body?: object,
): Promise<unknown> {
  return (await sendAsOperator(io, options, { method, path, body })).body
}

const minuteOf = (time: string | null) => time?.slice(0, 16).replace('T', ' ')
