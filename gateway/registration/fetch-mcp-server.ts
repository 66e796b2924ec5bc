import type { AgentCredential } from '@parley/kit/auth/agent-credential'
import { OutgoingRefused } from '@parley/kit/net/outgoing-errors'
import { outgoingUrl } from '@parley/kit/net/outgoing-url'
import { messageWithCause } from '@parley/relay/client/agent-errors'
import type { AgentSecurity } from '@parley/wire/codecs/foreign-card'
import { readListedSkills } from '@parley/wire/codecs/parley/skills'
import { ParleyError } from '@parley/wire/errors'
import type { JsonObject } from '@parley/wire/model/task'
import { z } from 'zod'
import type { AgentEntry } from '../registry/entry.ts'
import type { FetchedAgent } from './fetch-agent.ts'
import type { GuardedClient } from './guarded-client.ts'
import { registrationError, toRegistrationError } from './registration-errors.ts'

/** The dialect of entries that are MCP servers. */
export const mcpDialect = 'mcp'

const defaultReadMaxMs = 60_000

export interface McpServerOptions {
  client: GuardedClient
  /** The credential of the server, and what is known about it from an earlier reading. */
  credential?: AgentCredential | undefined
  known?: AgentEntry | undefined
  /** The name of the agent. Default: that of the server. */
  name?: string | undefined
  /** The time limit for all requests. The list of tools may have 100 pages. Default 60 s. */
  readMaxMs?: number
}

/**
 * Reads an MCP server as an agent of which the skills are its tools. A server that requires a credential is registered without tools,
 * which are read once an operator has set the credential.
 * @throws ParleyError InvalidParams
 */
export async function fetchMcpServer(url: string, options: McpServerOptions): Promise<FetchedAgent> {
  const { client, credential, known, readMaxMs = defaultReadMaxMs } = options
  // The name of an entry is part of its identity.
  const named = known?.name ?? options.name
  // The client library is loaded with the first server.
  const { readServer } = await import('@parley/relay/mcp/read-server')
  const { skillOf } = await import('@parley/relay/mcp/tools')
  const { ServerRefusedCredential } = await import('@parley/relay/mcp/http-transport')
  const security = known?.relay?.security ?? []
  try {
    const { info, tools } = await readServer({
      url,
      credential,
      allowed: client.allowed,
      resolver: client.resolver,
      ca: client.ca,
      signal: AbortSignal.timeout(readMaxMs),
    })
    const name = named ?? info.title ?? (info.name || hostOf(url))
    const description = info.instructions.slice(0, 1000) || `Tools of the MCP server ${name}`
    const card = {
      name,
      description,
      version: info.version,
      url,
      mcp: {
        name: info.name,
        ...(info.title !== undefined && { title: info.title }),
        revision: info.revision,
      },
      skills: tools.map(skillOf),
      capabilities: { streaming: true },
    }
    return fetched(card, { url, security })
  } catch (error) {
    if (!(error instanceof ServerRefusedCredential)) throw asRegistrationError(error)
    if (credential !== undefined || known !== undefined)
      throw registrationError('credential', error.message, error)
    const found = await securityOf(url, error.challenge, client)
    const description =
      'An MCP server that requires a credential. Its tools are read once an operator has set it.'
    return fetched(
      { name: named ?? hostOf(url), description, version: '1.0.0', url, skills: [] },
      { url, security: found },
    )
  }
}

function fetched(
  card: JsonObject & { name: string; description: string },
  { url, security }: { url: string; security: AgentSecurity[] },
): FetchedAgent {
  return {
    name: card.name,
    description: card.description,
    card,
    skills: readListedSkills(card['skills']),
    relay: { url, dialect: mcpDialect, streaming: true, security, unsupportedSecurity: false },
  }
}

const hostOf = (url: string) => new URL(url).host

function asRegistrationError(error: unknown): unknown {
  if (error instanceof OutgoingRefused) return toRegistrationError(error, 'The URL')
  if (error instanceof ParleyError || !(error instanceof Error)) return error
  if (error.name === 'TimeoutError')
    return registrationError('mcp', 'The server did not send its list of tools in time', error)
  const hint =
    'Check that the address is the endpoint of an MCP server (Streamable HTTP), which often ends with /mcp. An A2A agent is registered without --mcp'
  return registrationError('mcp', `${messageWithCause(error).replace(/\.$/, '')}. ${hint}`, error)
}

const resourceMetadata = z.looseObject({ authorization_servers: z.array(z.string().max(2048)).min(1) })
const serverMetadata = z.looseObject({
  token_endpoint: z.string().max(2048),
  grant_types_supported: z.array(z.string()).optional(),
  scopes_supported: z.array(z.string().max(256)).max(100).optional(),
})

/** Returns the ways to authenticate: a bearer token, and client credentials at the OAuth server that the server names (RFC 9728). */
async function securityOf(url: string, challenge: string, client: GuardedClient): Promise<AgentSecurity[]> {
  const bearer: AgentSecurity = { scheme: 'bearer', kind: 'bearer' }
  const oauth = await oauthOf(url, challenge, client).catch((error: unknown) => {
    if (error instanceof ParleyError || error instanceof OutgoingRefused) return undefined
    throw error
  })
  return oauth === undefined ? [bearer] : [bearer, oauth]
}

async function oauthOf(
  url: string,
  challenge: string,
  client: GuardedClient,
): Promise<AgentSecurity | undefined> {
  const { origin, pathname } = new URL(url)
  const named = /\bresource_metadata="?([^",\s]+)/i.exec(challenge)?.[1]
  const place = named ?? `${origin}/.well-known/oauth-protected-resource${pathname === '/' ? '' : pathname}`
  if (URL.parse(place)?.origin !== origin) return undefined
  const resource = resourceMetadata.safeParse(await client.getObject(place, 'The metadata')).data
  const issuer = URL.parse(resource?.authorization_servers[0] ?? '')
  if (issuer === null) return undefined
  const path = issuer.pathname === '/' ? '' : issuer.pathname
  const at = `${issuer.origin}/.well-known/oauth-authorization-server${path}`
  const server = serverMetadata.safeParse(await client.getObject(at, 'The metadata of the OAuth server')).data
  if (server === undefined || server.grant_types_supported?.includes('client_credentials') === false)
    return undefined
  const tokenUrl = outgoingUrl(server.token_endpoint, client.allowed).url.href
  return { scheme: 'oauth2', kind: 'oauth2', tokenUrl, scopes: [] }
}
