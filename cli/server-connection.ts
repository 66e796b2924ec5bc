import { type Command, Option } from 'commander'
import { AgentClient } from '../shared/client/client.ts'
import { ConnectionError, RpcError } from '../shared/client/rpc-error.ts'
import { clientSettings } from './environment.ts'
import { UsageError } from './faults.ts'
import type { Io } from './io.ts'
import { tokenSource } from './token-source.ts'

export interface ServerOptions {
  url?: string
  token?: string
}

/** The options of every command that asks a running server. */
export function withServerOptions<T extends Command>(command: T): T {
  return command
    .addOption(
      new Option('--url <url>', 'address of the gateway (default: PUBLIC_URL, else http://HOST:PORT)'),
    )
    .addOption(
      new Option(
        '--token <token>',
        'bearer token (default: PARLEY_TOKEN, else one of DATA_DIR/dev-client.json)',
      ),
    )
}

/** The running server, as the caller of this command sees it. */
export interface ServerConnection {
  url: string
  /** A client of the agent with this slug; `-` is the gateway itself. */
  agent(slug: string): AgentClient
  /** GET of a path below the address, its JSON. */
  getJson(path: string): Promise<{ body: unknown; headers: Headers }>
}

/** @throws UsageError, ConfigError, CommandFailed */
export async function connect(io: Io, options: ServerOptions): Promise<ServerConnection> {
  const settings = clientSettings(io)
  const url = (options.url === undefined ? settings.url : httpUrl(options.url)).replace(/\/+$/, '')
  const token = await tokenSource({ ...settings, token: options.token ?? settings.token, url })
  const given = token === undefined ? {} : { token }
  return {
    url,
    agent: (slug) => new AgentClient({ url: slug === '-' ? url : `${url}/agents/${slugOf(slug)}`, ...given }),
    async getJson(path) {
      const authorization = token === undefined ? {} : { authorization: `Bearer ${await token()}` }
      return fetchJson(`${url}${path}`, authorization)
    },
  }
}

async function fetchJson(url: string, headers: Record<string, string>) {
  let response: Response
  let text: string
  try {
    response = await fetch(url, { headers, redirect: 'manual', signal: AbortSignal.timeout(30_000) })
    text = await response.text()
  } catch (thrown) {
    throw new ConnectionError(url, thrown)
  }
  const body = parsed(text)
  if (response.ok && body !== undefined) return { body, headers: response.headers }
  const { code = 0, message = `${url}: HTTP ${response.status}` } =
    (body as { error?: { code?: number; message?: string } } | undefined)?.error ?? {}
  throw new RpcError({ code, status: response.status, message, headers: response.headers })
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function httpUrl(text: string): string {
  if (!/^https?:$/.test(URL.parse(text)?.protocol ?? '')) {
    throw new UsageError(`--url must be an http or https address, not "${text}".`)
  }
  return text
}

function slugOf(text: string): string {
  if (!/^[a-z0-9][a-z0-9-]*$/.test(text)) {
    throw new UsageError(
      `"${text}" is no agent's name: lower-case letters, digits and "-" (npx parley agents).`,
    )
  }
  return text
}
