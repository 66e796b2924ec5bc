import path from 'node:path'
import { ExposedSecretFile, readSecretFile } from '@parley/kit/process/secret-file'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'
import { CommandFailed } from '../terminal/faults.ts'
import { oneLine } from '../terminal/printable.ts'

export interface IssuedToken {
  access_token: string
  token_type: string
  expires_in: number
  scope: string
}

const devClient = z.object({ client_id: z.string(), client_secret: z.string(), token_url: z.url() })
type DevClient = z.infer<typeof devClient>

const issued = z.object({
  access_token: z.string().min(1),
  token_type: z.string().default('Bearer'),
  expires_in: z.number().default(0),
  scope: z.string().default(''),
})

/** The OAuth clients that the server writes to DATA_DIR: one for development and one for the operator. */
const clientFiles = { developer: 'dev-client.json', operator: 'oauth/operator-client.json' } as const
export type Role = keyof typeof clientFiles
/** The operator scope is granted only when requested. */
const scopes = { developer: 'agent:read agent:write', operator: 'agent:read agent:write agent:admin' }

/** Reads the client that the server wrote. Returns undefined if there is none. */
export async function readClient(dataDir: string, as: Role): Promise<DevClient | undefined> {
  const file = path.join(dataDir, clientFiles[as])
  let text: string
  try {
    text = await readSecretFile(file)
  } catch (thrown) {
    if (thrown instanceof ExposedSecretFile) throw thrown
    const { code } = thrown as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined
    throw new CommandFailed(`${file} cannot be read (${code}).`)
  }
  // The parser's error message would quote the file with the secret.
  const parsed = devClient.safeParse(jsonOf(text))
  if (!parsed.success) throw new CommandFailed(`${file} is not a client file.`)
  return parsed.data
}

/**
 * Requests a token with client credentials (RFC 6749, section 4.4).
 * @param resource the audience of the token (RFC 8707)
 */
export async function issueToken(
  client: DevClient,
  scope: string = scopes.developer,
  resource?: string,
): Promise<IssuedToken> {
  const { client_id, client_secret, token_url } = client
  const form = { grant_type: 'client_credentials', client_id, client_secret, scope }
  let response: Response
  try {
    response = await fetch(token_url, {
      method: 'POST',
      redirect: 'error',
      body: new URLSearchParams({ ...form, ...(resource !== undefined && { resource }) }),
      signal: AbortSignal.timeout(10_000),
    })
  } catch {
    throw new CommandFailed(
      `The token server does not answer (${token_url}). Is the server running (npx parley up)?`,
    )
  }
  const body = jsonOf(await response.text())
  const parsed = issued.safeParse(body)
  if (response.ok && parsed.success) {
    if (parsed.data.scope === '' && 'scope' in Object(body))
      throw new CommandFailed(`The token server grants no scope of "${oneLine(scope, 200)}".`)
    return parsed.data
  }
  const { error = `HTTP ${response.status}`, error_description: why = '' } = (body ?? {}) as Record<
    string,
    string
  >
  throw new CommandFailed(oneLine(`The token server refused: ${error} ${why}`))
}

/** Returns the bearer token for the next request. */
export type TokenSource = () => Promise<string>

/**
 * Supplies the bearer token of each request: the given token, otherwise one of the client in DATA_DIR for this role,
 * renewed before it expires. Tokens of that client are sent only to its own server, never to another address.
 */
export async function tokenSource(options: {
  token: string | undefined
  dataDir: string
  url: string
  as: Role
  /** Whether the token is valid at the gateway only. */
  forGateway?: boolean
}): Promise<TokenSource | undefined> {
  const { token } = options
  if (token !== undefined) return async () => token
  const client = await readClient(options.dataDir, options.as)
  if (client === undefined || !isSameOrigin(client.token_url, options.url)) return undefined
  return renewing(client, scopes[options.as], options.forGateway ? gatewayOf(client) : undefined)
}

/** The gateway of the embedded OAuth server, whose token endpoint is `<gateway>/oauth2/token`. */
function gatewayOf({ token_url }: DevClient): string {
  return token_url.replace(/\/oauth2\/token$/, '')
}

function renewing(client: DevClient, scope: string, resource?: string): TokenSource {
  let current: { token: string; until: number } | undefined
  return async () => {
    if (current !== undefined && Date.now() <= current.until) return current.token
    const { access_token: token, expires_in } = await issueToken(client, scope, resource)
    current = { token, until: Date.now() + (expires_in - 30) * 1000 }
    return token
  }
}

const loopback = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/

/** Treats all loopback names as equal. A different port is a different server. */
function isSameOrigin(one: string, other: string): boolean {
  const [a, b] = [new URL(one), new URL(other)]
  if (a.origin === b.origin) return true
  return a.protocol === b.protocol && a.port === b.port && [a, b].every(isLoopback)
}

function isLoopback({ hostname }: URL): boolean {
  return loopback.test(hostname)
}
