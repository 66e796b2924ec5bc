import { type AgentCredential, agentCredential } from '@parley/kit/auth/agent-credential'
import { ParleyError } from '@parley/wire/errors'
import { z } from 'zod'
import type { OAuthStore } from '../oauth/oauth-store.ts'
import type { AgentEntry } from '../registry/entry.ts'
import { mcpDialect } from './fetch-mcp-server.ts'

const model = 'AgentCredential'
const stored = z.object({ entryId: z.string(), url: z.string(), credential: agentCredential })

/**
 * The credentials with which the relay calls foreign agents. They are stored encrypted and are never returned. A credential
 * is bound to the address for which an operator set it, so that a changed card cannot direct it to another server.
 */
export class AgentCredentials {
  readonly #store: Pick<OAuthStore, 'upsert' | 'list' | 'destroy'>
  /** By the ID of the entry. */
  #known = new Map<string, { url: string; credential: AgentCredential }>()
  /** The number of changes by this gateway. */
  #changes = 0

  constructor(store: Pick<OAuthStore, 'upsert' | 'list' | 'destroy'>) {
    this.#store = store
  }

  /** Reads the credentials that this gateway and others have set. Has no effect if this gateway changes one in the meantime. */
  async load(): Promise<void> {
    const changes = this.#changes
    const payloads = await this.#store.list(model)
    if (changes !== this.#changes) return
    const read = payloads.flatMap((payload) => stored.safeParse(payload).data ?? [])
    this.#known = new Map(read.map(({ entryId, ...one }) => [entryId, one]))
  }

  /**
   * Returns the credential that a text is for the agent, and the servers that may receive it.
   * @param scheme the name of a scheme in the card; by default, the only one that the text fits
   * @throws ParleyError Conflict, InvalidParams
   */
  check(
    { relay, slug }: AgentEntry,
    text: string,
    scheme?: string,
  ): { url: string; credential: AgentCredential } {
    if (relay === undefined)
      throw new ParleyError('Conflict', {
        message: `Agent ${slug} receives exchanged tokens and needs no credential`,
        data: { reason: 'not_relayed' },
      })
    const read = agentCredential.safeParse(credentialOf(relay, text, scheme))
    if (!read.success) throw invalid('The credential has characters that are not allowed, or is too long')
    const { data: credential } = read
    return { url: targetOf(relay.url, credential), credential }
  }

  /** Sets or replaces the credential of an agent. @throws ParleyError Conflict, InvalidParams */
  async set(entry: AgentEntry, text: string, scheme?: string): Promise<void> {
    const { id } = entry
    const { url, credential } = this.check(entry, text, scheme)
    await this.#store.upsert({ model, id, payload: { entryId: id, url, credential } })
    this.#changes += 1
    this.#known.set(id, { url, credential })
  }

  async remove(entryId: string): Promise<void> {
    await this.#store.destroy(model, entryId)
    this.#changes += 1
    this.#known.delete(entryId)
  }

  /** Returns the credential if the agent is still at the address for which it was set. */
  of({ id, relay }: Pick<AgentEntry, 'id' | 'relay'>): AgentCredential | undefined {
    const known = this.#known.get(id)
    if (known === undefined || relay === undefined) return undefined
    return known.url === targetOf(relay.url, known.credential) ? known.credential : undefined
  }
}

/** The servers that receive the credential. The OAuth server is part of the credential. */
function targetOf(url: string, credential: AgentCredential): string {
  const { origin } = new URL(url)
  return credential.kind === 'oauth2' ? `${origin} ${credential.tokenUrl}` : origin
}

type Relay = NonNullable<AgentEntry['relay']>

/** Returns the scheme that an operator has named, or the only one that the text fits; undefined if the card has none. */
function schemeFor({ security, dialect }: Relay, text: string, name: string | undefined) {
  const header =
    dialect === mcpDialect ? /^header:([\w!#$%&'*+.^`|~-]{1,256})$/.exec(name ?? '')?.[1] : undefined
  if (header !== undefined) return { kind: 'apiKey' as const, in: 'header' as const, name: header }
  const names = security.map(({ scheme = '', kind }) => `${scheme} (${kinds[kind]})`).join(', ')
  if (name !== undefined) {
    const named = security.find(({ scheme }) => scheme === name)
    if (named !== undefined) return named
    throw invalid(`The card has no supported scheme of this name. It has ${names || 'none'}`, 'scheme')
  }
  if (security.length < 2) return security[0]
  const fitting = security.filter(({ kind }) => fits[kind].test(text))
  if (fitting.length === 1) return fitting[0]
  const which = fitting.length === 0 ? 'none' : 'several'
  throw invalid(`The credential fits ${which} of the schemes of the card: ${names}. Name one as the scheme`)
}

const kinds = { bearer: 'bearer token', apiKey: 'API key', oauth2: 'client-id:client-secret' }
/** A bearer token has no colon (RFC 6750, section 2.1). */
const fits = { bearer: /^[\w.~+/-]+=*$/, apiKey: /^[\x21-\x7e]+$/, oauth2: /^[^:]+:./ }

/** Returns the credential, unvalidated; a bearer token for a card without schemes. */
function credentialOf(relay: Relay, text: string, name: string | undefined): AgentCredential {
  const scheme = schemeFor(relay, text, name)
  if (scheme === undefined || scheme.kind === 'bearer') return { kind: 'bearer', token: text }
  if (scheme.kind === 'apiKey') return { ...scheme, value: text }
  const at = text.indexOf(':')
  if (at <= 0)
    throw invalid('The agent requires OAuth2 client credentials, in the form client-id:client-secret')
  const { tokenUrl, scopes } = scheme
  return {
    kind: 'oauth2',
    tokenUrl,
    clientId: text.slice(0, at),
    clientSecret: text.slice(at + 1),
    ...(scopes.length > 0 && { scope: scopes.join(' ') }),
  }
}

function invalid(message: string, path = 'credential'): ParleyError {
  return new ParleyError('InvalidParams', { data: { issues: [{ path, message }] } })
}
