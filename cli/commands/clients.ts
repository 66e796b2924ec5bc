import { RpcError } from '@parley/client/internal/rpc-error'
import {
  clientLimitOut,
  type ReadClient,
  type ReadKey,
  readClient,
  readClientPage,
  readKeys,
} from '@parley/wire/codecs/parley/clients'
import { sendAsOperator, whoMay } from '../server/operate.ts'
import { type Method, type ServerOptions, withServerOptions } from '../server/server-connection.ts'
import { CliCommand } from '../terminal/cli-command.ts'
import { CommandFailed, UsageError } from '../terminal/faults.ts'
import { type Io, print, printJson } from '../terminal/io.ts'
import { lifetimeOf } from '../terminal/lifetime.ts'
import { oneLine } from '../terminal/printable.ts'
import { table } from '../terminal/table.ts'
import { wholeNumber } from '../terminal/whole-number.ts'

interface ClientsOptions extends ServerOptions {
  query?: string
  scope?: string
  perMinute?: number
  expires?: string
  resource?: string[]
  none?: true
  json?: true
}

const help = `
Actions:
  (none), list                list the clients
  show <id>                   show a client and its keys
  limit <id>                  replace the limits: --scope, --per-minute, --expires, --resource, or --none
  tag <id> [tags...]          replace the tags, to which policies refer; without tags, remove them
  revoke <id>                 disable the client; its tokens, keys and approvals end
  enable <id>                 allow a revoked client to get tokens again
  remove <id>                 remove the client and all decisions about it; it may register again
  keys [id]                   list long-lived keys, of all clients or of one
  revoke-key <key id>         revoke a long-lived key

Limits apply to existing tokens too. npx parley token --long-lived creates a key.`

const pageSize = 200
const pagesMax = 500

export default function clientsCommand(io: Io): CliCommand {
  const collected = (text: string, before: string[] = []) => [...before, text]
  return withServerOptions(new CliCommand('clients'))
    .argument('[action]', 'list, show, limit, tag, revoke, enable, remove, keys or revoke-key')
    .argument('[values...]', 'id of a client or key, and tags')
    .option('--query <text>', 'list: only clients with this text in id or name')
    .option('--scope <scopes>', 'limit: the only scopes of the client, separated by spaces')
    .option('--per-minute <count>', 'limit: requests per minute', wholeNumber(1_000_000, 1))
    .option('--expires <duration>', 'limit: the client gets no tokens after this time, for example 90d')
    .option('--resource <address>', 'limit: the only server for which it gets tokens (repeatable)', collected)
    .option('--none', 'limit: remove all limits')
    .option('--json', 'print the answer of the gateway as JSON')
    .addHelpText('after', help + whoMay)
    .members({
      id: '<id>',
      q: '--query',
      client: '<id>',
      tags: '<tags>',
      expiresAt: '--expires',
      resources: '--resource',
    })
    .run((action: string | undefined, values: string[], options: ClientsOptions) =>
      run(io, options, action ?? 'list', values),
    )
}

async function run(io: Io, options: ClientsOptions, action: string, values: string[]): Promise<void> {
  requireLimitOptions(action, options)
  const [id, ...others] = values
  if (action === 'list') return list(io, options, values)
  if (action === 'keys') return listKeys(io, options, values)
  if (!actions.includes(action))
    throw new UsageError(`"${action}" is not an action: use ${actions.join(', ')}.`)
  if (id === undefined)
    throw new UsageError(`${action} takes the id of a ${action === 'revoke-key' ? 'key' : 'client'}.`)
  if (others.length > 0 && action !== 'tag') throw new UsageError(`${action} takes one id.`)
  if (action === 'show') return show(io, options, id)
  if (action === 'remove' || action === 'revoke-key') {
    const path =
      action === 'remove' ? `/clients/${encodeURIComponent(id)}` : `/client-keys/${encodeURIComponent(id)}`
    const body = await request(io, options, 'DELETE', path)
    if (options.json) printJson(io, body)
    else print(io, `${oneLine(id, 200)} is ${action === 'remove' ? 'removed' : 'revoked'}.\n`)
    return
  }
  const body = action === 'tag' ? { id, tags: others } : action === 'limit' ? limitOf(id, options) : { id }
  const changed = await request(io, options, 'POST', `/clients/${action}`, body)
  if (options.json) printJson(io, changed)
  else print(io, linesOf(readClient(changed)))
}

const actions = ['list', 'show', 'limit', 'tag', 'revoke', 'enable', 'remove', 'keys', 'revoke-key']

/** @throws UsageError */
function requireLimitOptions(
  action: string,
  { query, scope, perMinute, expires, resource, none }: ClientsOptions,
): void {
  if (query !== undefined && action !== 'list') throw new UsageError('--query belongs to list.')
  const limits = [scope, perMinute, expires, resource].filter((limit) => limit !== undefined)
  if (action !== 'limit') {
    if (limits.length > 0 || none)
      throw new UsageError('--scope, --per-minute, --expires, --resource and --none belong to limit.')
  } else if (limits.length > 0 === (none === true)) {
    throw new UsageError('limit replaces all limits: name at least one, or remove them with --none.')
  }
}

function limitOf(id: string, { scope, perMinute, expires, resource }: ClientsOptions): object {
  const expiresAt = expires && new Date(Date.now() + lifetimeOf(expires) * 1000).toISOString()
  return clientLimitOut(id, { scope, requestsPerMinute: perMinute, expiresAt, resources: resource })
}

async function list(io: Io, options: ClientsOptions, values: string[]): Promise<void> {
  if (values.length > 0) throw new UsageError('list takes no further arguments: use --query or show.')
  const clients: ReadClient[] = []
  let cursor: string | undefined
  for (let page = 0; page < pagesMax; page += 1) {
    const query = new URLSearchParams({ limit: String(pageSize) })
    if (options.query !== undefined) query.set('q', options.query)
    if (cursor !== undefined) query.set('cursor', cursor)
    const answer = readClientPage(await request(io, options, 'GET', `/clients?${query.toString()}`))
    clients.push(...answer.clients)
    cursor = answer.nextCursor
    if (cursor === undefined) break
  }
  if (options.json) return printJson(io, { clients })
  if (clients.length === 0) return print(io, 'No clients.\n')
  const rows = clients.map((client) => [
    oneLine(client.id, 80),
    oneLine(client.name, 30),
    client.kind,
    client.enabled ? oneLine(client.scope, 60) : 'revoked',
    dayOf(client.lastUsedAt) ?? 'never',
    oneLine([...limitsOf(client), ...client.tags.map((tag) => `#${tag}`)].join(', '), 80),
  ])
  print(io, table([['CLIENT', 'NAME', 'KIND', 'SCOPE', 'LAST USED', 'LIMITS AND TAGS'], ...rows]))
}

async function show(io: Io, options: ClientsOptions, id: string): Promise<void> {
  const client = await request(io, options, 'GET', `/clients/${encodeURIComponent(id)}`)
  const keys = await request(io, options, 'GET', `/client-keys?client=${encodeURIComponent(id)}`)
  if (options.json) return printJson(io, { client, ...(typeof keys === 'object' && keys) })
  print(io, linesOf(readClient(client)))
  for (const key of readKeys(keys)) print(io, `key         ${keyLine(key)}\n`)
}

async function listKeys(io: Io, options: ClientsOptions, [id, ...others]: string[]): Promise<void> {
  if (others.length > 0) throw new UsageError('keys takes at most one client.')
  const query = id === undefined ? '' : `?client=${encodeURIComponent(id)}`
  const body = await request(io, options, 'GET', `/client-keys${query}`)
  if (options.json) return printJson(io, body)
  const keys = readKeys(body)
  if (keys.length === 0) return print(io, 'No keys.\n')
  const rows = keys.map((key) => [
    key.id,
    oneLine(key.client, 80),
    oneLine(key.name, 40),
    oneLine(key.scope, 60),
    oneLine(key.resource ?? 'any server', 80),
    dayOf(key.expiresAt) ?? '',
  ])
  print(io, table([['KEY', 'CLIENT', 'NAME', 'SCOPE', 'FOR', 'EXPIRES'], ...rows]))
}

async function request(
  io: Io,
  options: ServerOptions,
  method: Method,
  path: string,
  body?: object,
): Promise<unknown> {
  try {
    return (await sendAsOperator(io, options, { method, path, body })).body
  } catch (error) {
    if (!(error instanceof RpcError) || error.data['reason'] !== 'route') throw error
    throw new CommandFailed('The gateway uses another OAuth server: manage its clients there.')
  }
}

function linesOf(client: ReadClient): string {
  const rows: [string, string | undefined][] = [
    ['client', client.id],
    ['name', client.name],
    ['kind', client.enabled ? client.kind : `${client.kind}, revoked`],
    ['scope', client.scope],
    ['limits', limitsOf(client).join(', ')],
    ['tags', client.tags.join(', ')],
    ['created', client.createdAt],
    ['last token', client.lastTokenAt],
    ['last used', client.lastUsedAt],
  ]
  const given = rows.filter(([, value]) => value !== undefined && value !== '')
  return given.map(([name, value = '']) => `${name.padEnd(12)}${oneLine(value, 500)}\n`).join('')
}

function limitsOf({ limits }: ReadClient): string[] {
  const { scope, perMinute, expiresAt, resources } = limits
  return [
    ...(scope === undefined ? [] : [scope]),
    ...(perMinute === undefined ? [] : [`${perMinute} a minute`]),
    ...(expiresAt === undefined ? [] : [`until ${dayOf(expiresAt) ?? ''}`]),
    ...(resources === undefined ? [] : [`for ${resources.join(' ')}`]),
  ]
}

function keyLine({ id, name, scope, resource, expiresAt }: ReadKey): string {
  const limits = [
    scope,
    ...(resource === undefined ? [] : [`for ${resource}`]),
    `until ${dayOf(expiresAt) ?? ''}`,
  ]
  return `${id} ${oneLine(name === '' ? limits.join(', ') : `${name}: ${limits.join(', ')}`, 200)}`
}

const dayOf = (time: string | undefined) => time?.slice(0, 10)
