import { AgentClient } from '@parley/client/internal/client'
import { ConnectionError, RpcError } from '@parley/client/internal/rpc-error'
import type { ClientOptions } from '@parley/client/internal/transport'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { type Command, Option } from 'commander'
import { UsageError } from '../terminal/faults.ts'
import type { Io } from '../terminal/io.ts'
import { clientSettings } from './environment.ts'
import { type TokenSource, tokenSource } from './token-source.ts'

export interface ServerOptions {
  url?: string
  token?: string
}

/** Adds the options that all commands that call a running server share. */
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

export type Method = 'GET' | 'POST' | 'PUT' | 'DELETE'

/** A connection to a running server with this command's credentials. */
export interface ServerConnection {
  url: string
  /** Returns the bearer token for the next request. Undefined if the command has no credentials. */
  token: TokenSource | undefined
  /** Returns a client of the agent with this slug; `-` means the gateway itself. */
  agent(slug: string, more?: Pick<ClientOptions, 'fetch' | 'requestTimeoutMs'>): AgentClient
  /** Sends a GET request to a path below the server's address. Resolves with the JSON body. */
  getJson(path: string): Promise<{ body: unknown; headers: Headers }>
  /** Sends a GET request to a public path without a token. */
  getPublicJson(path: string): Promise<unknown>
  /** Sends a request with an optional JSON body. Resolves with the JSON body of the response. */
  send(
    method: Method,
    path: string,
    body?: object,
    headers?: Record<string, string>,
  ): Promise<{ body: unknown; status: number; headers: Headers }>
}

/** @throws UsageError, ConfigError, CommandFailed */
export async function connect(
  io: Io,
  options: ServerOptions,
  as: 'developer' | 'operator' = 'developer',
  forGateway = false,
): Promise<ServerConnection> {
  const settings = clientSettings(io)
  const url = (options.url === undefined ? settings.url : httpUrl(options.url)).replace(/\/+$/, '')
  const given = options.token ?? settings.token
  const token = await tokenSource({ ...settings, token: given, url, as, forGateway })
  const bearer = async (): Promise<Record<string, string>> =>
    token === undefined ? {} : { authorization: `Bearer ${await token()}` }
  return {
    url,
    token,
    agent: (slug, more) =>
      new AgentClient({
        url: slug === '-' ? url : `${url}/agents/${slugOf(slug)}`,
        ...(token !== undefined && { token }),
        ...more,
      }),
    async getJson(path) {
      return fetchJson(`${url}${path}`, { headers: await bearer() })
    },
    getPublicJson: async (path) => (await fetchJson(`${url}${path}`, {})).body,
    async send(method, path, body, more) {
      const type = body && { 'content-type': 'application/json' }
      const headers = { ...(await bearer()), ...type, ...more }
      const sent = body === undefined ? {} : { body: JSON.stringify(body) }
      return fetchJson(`${url}${path}`, { method, headers, ...sent })
    },
  }
}

async function fetchJson(url: string, init: RequestInit) {
  let response: Response
  let text: string
  try {
    response = await fetch(url, { ...init, redirect: 'manual', signal: AbortSignal.timeout(30_000) })
    text = await response.text()
  } catch (thrown) {
    throw new ConnectionError(url, thrown)
  }
  const body = parsed(text)
  if (response.ok && body !== undefined) return { body, headers: response.headers, status: response.status }
  const {
    code = 0,
    message = ardMessage(body) ?? `${url}: HTTP ${response.status}`,
    data = {},
  } = (body as { error?: Partial<Pick<RpcError, 'code' | 'message' | 'data'>> } | undefined)?.error ?? {}
  throw new RpcError({ code, status: response.status, message, data, headers: response.headers })
}

/** The message of an error in the form of ARD (spec/catalog.md#errors). */
function ardMessage(body: unknown): string | undefined {
  const message = isObject(body) && 'errorCode' in body ? body['message'] : undefined
  return typeof message === 'string' ? message : undefined
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

export function slugOf(text: string): string {
  if (!/^[a-z0-9][a-z0-9-]*$/.test(text)) {
    throw new UsageError(
      `"${text}" is not a valid agent name: use lower-case letters, digits and "-" (see npx parley agents).`,
    )
  }
  return text
}
