import type { Caller } from '@parley/kit/auth/caller'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { isExternal } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'

/** The facts about a token that decide which agents may receive it. They do not change during its lifetime. */
export interface TokenInfo {
  /** The token's `aud` without trailing slashes; empty if the claim is absent. */
  audience: readonly string[]
  /** Whether the token has the scope `agent:admin`. */
  isOperator: boolean
  /** Public address of the gateway. An audience may name an agent by its address below this one. */
  gatewayUrl: string
}

/**
 * `omit`: the request is forwarded without the token. `wrong_audience`, `operator_token`: the request is not
 * forwarded, because the agent would require the token.
 */
export type TokenDecision = 'forward' | 'omit' | 'wrong_audience' | 'operator_token'

type Recipient = Pick<
  AgentEntry,
  'slug' | 'did' | 'url' | 'card' | 'origin' | 'own' | 'verified' | 'admitted' | 'admittedBy'
>

declare module 'fastify' {
  interface FastifyRequest {
    /** Set after the introspection of the bearer token, which is otherwise forwarded to no agent. */
    token?: TokenInfo
  }
}

export function tokenInfoOf({ audience = [], scopes }: Caller, gatewayUrl: string): TokenInfo {
  return {
    audience: audience.map(withoutSlash),
    isOperator: scopes.has('agent:admin'),
    gatewayUrl: withoutSlash(gatewayUrl),
  }
}

/** Whether the agent may receive this token. This applies to every request that the gateway sends to an agent. */
export function mayForwardToken(entry: Recipient, token: TokenInfo | undefined): boolean {
  return tokenDecision(entry, token) === 'forward'
}

export function tokenDecision(entry: Recipient, token: TokenInfo | undefined): TokenDecision {
  const external = isExternal(entry)
  if (external && !declaresBearer(entry.card)) return 'omit'
  if (token === undefined) return external ? 'wrong_audience' : 'omit'
  const isOwn = namesOf(entry, token.gatewayUrl)
  // An operator may read the ledger of a supervised agent with a token that is valid for this agent only.
  if (token.isOperator)
    return !external && token.audience.length > 0 && token.audience.every(isOwn)
      ? 'forward'
      : 'operator_token'
  return !external || token.audience.some(isOwn) ? 'forward' : 'wrong_audience'
}

/**
 * Returns true if the request is forwarded with the token and false if it is forwarded without it.
 * @throws ParleyError InsufficientPermissions if the request must not be forwarded
 */
export function requireForwarding(entry: Recipient, token: TokenInfo | undefined): boolean {
  const decision = tokenDecision(entry, token)
  if (decision === 'wrong_audience' || decision === 'operator_token') throw tokenRefused(entry, decision)
  return decision === 'forward'
}

/** The OAuth parameter `resource` for a token that this agent may receive. */
export function resourceOf({ did, url, verified }: Pick<AgentEntry, 'did' | 'url' | 'verified'>): string {
  return verified && did !== undefined ? did : url
}

/** HTTP 403 for a request whose token the agent may not receive. The message explains how to get another token. */
export function tokenRefused(
  entry: Recipient,
  reason: Exclude<TokenDecision, 'forward' | 'omit'>,
): ParleyError {
  const { slug } = entry
  const resource = resourceOf(entry)
  const how = `npx parley token --resource ${resource}, or the OAuth parameter resource=${resource}`
  const message =
    reason === 'operator_token'
      ? `A token with the scope agent:admin is not forwarded to agent ${slug}: use a token without that scope`
      : `Agent ${slug} is external and your token does not name it, so it was not forwarded: get a token for this agent (${how}) and send the request to /agents/${slug}/`
  return new ParleyError('InsufficientPermissions', { message, data: { reason, agent: slug, resource } })
}

/** HTTP 403 for an operator token on a request that names no agent. */
export function operatorTokenRefused(): ParleyError {
  return new ParleyError('InsufficientPermissions', {
    message: 'A token with the scope agent:admin is not forwarded to agents: use a token without that scope',
    data: { reason: 'operator_token' },
  })
}

/** An unproven DID does not count, because it may belong to another agent, which would accept the token. */
function namesOf({ slug, did, url, verified }: Recipient, gatewayUrl: string): (name: string) => boolean {
  const own = [
    withoutSlash(url),
    `${gatewayUrl}/agents/${slug}`,
    ...(verified && did !== undefined ? [did] : []),
  ]
  return (name) => own.includes(name)
}

/** Whether the card declares a bearer token scheme, which A2A 0.3 and 1.0 spell differently. */
export function declaresBearer(card: AgentEntry['card'] | undefined): boolean {
  const schemes = card?.['securitySchemes']
  return isObject(schemes) && Object.values(schemes).some(isBearerScheme)
}

function isBearerScheme(scheme: unknown): boolean {
  if (!isObject(scheme)) return false
  const { type, scheme: name, httpAuthSecurityScheme: http } = scheme
  if (type === 'oauth2' || type === 'openIdConnect') return true
  if ('oauth2SecurityScheme' in scheme || 'openIdConnectSecurityScheme' in scheme) return true
  const httpName = type === 'http' ? name : isObject(http) ? http['scheme'] : undefined
  return typeof httpName === 'string' && httpName.toLowerCase() === 'bearer'
}

function withoutSlash(address: string): string {
  return address.replace(/\/+$/, '')
}
