import { RpcError } from '@parley/client/internal/rpc-error'
import type { z } from 'zod'
import { CommandFailed } from '../terminal/faults.ts'
import { type Io, say } from '../terminal/io.ts'
import { oneLine, slugMax } from '../terminal/printable.ts'
import { connect, type Method, type ServerConnection, type ServerOptions } from './server-connection.ts'

export const whoSees = `
With a token that has agent:admin (--token, PARLEY_TOKEN, or the operator client that the embedded OAuth server keeps in
DATA_DIR), the command shows the entries of all owners. With another token, it shows the entries of its own client.`

/** A connection to the operator API of a gateway. */
export interface OperatorApi {
  connection: ServerConnection
  /** @throws RpcError, ConnectionError, CommandFailed if the server has no operator API or answers in another form */
  send<T>(schema: z.ZodType<T>, path: string, more?: { method?: Method; body?: object }): Promise<T>
}

/** Connects with the credentials of the operator, or with those of the caller if there are none. */
export async function operatorApi(io: Io, options: ServerOptions): Promise<OperatorApi> {
  const asOperator = await connect(io, options, 'operator')
  const connection = asOperator.token === undefined ? await connect(io, options) : asOperator
  return {
    connection,
    send: async (schema, path, { method = 'GET', body } = {}) => {
      const answer = await connection.send(method, path, body).catch((error: unknown) => {
        throw explainedFault(error)
      })
      const parsed = schema.safeParse(answer.body)
      if (parsed.success) return parsed.data
      throw new CommandFailed(
        `${connection.url} answered ${path.split('?')[0]} in another form. Use the version of the command line that the gateway has.`,
      )
    },
  }
}

function explainedFault(error: unknown): unknown {
  if (!(error instanceof RpcError)) return error
  if (error.code === -32013 && (error.data['reason'] ?? 'scope') === 'scope')
    return new CommandFailed(
      'The token lacks the scope agent:admin. In the folder of the server, omit --token and PARLEY_TOKEN to use its operator client.',
    )
  if (error.status === 404 && (error.code === 0 || error.data['reason'] === 'route'))
    return new CommandFailed('This server has no operator API: name the gateway with --url.')
  return error
}

/** A path with the given parameters. Undefined ones are omitted. */
export function pathWith(path: string, query: Record<string, string | number | boolean | undefined>): string {
  const search = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value))
  return search.size === 0 ? path : `${path}?${search.toString()}`
}

/** Names the agents that are missing in a list. */
export function sayUnread(io: Io, unread: readonly { agent: string; reason: string }[]): void {
  for (const { agent, reason } of unread.slice(0, 10))
    say(io, `not read: ${agent === '*' ? '' : `${oneLine(agent, slugMax)}: `}${oneLine(reason, 300)}`)
  if (unread.length > 10) say(io, `not read: ${unread.length - 10} more agents`)
}

/** A past time, such as `3 min ago`. */
export function agoText(time: string, now = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - Date.parse(time)) / 1000))
  if (seconds < 120) return `${seconds} s ago`
  if (seconds < 7200) return `${Math.round(seconds / 60)} min ago`
  if (seconds < 172_800) return `${Math.round(seconds / 3600)} h ago`
  return `${Math.round(seconds / 86_400)} d ago`
}

/** A duration, such as `1.5 s`. */
export function durationText(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  return seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`
}
