import type { AuthenticatedCaller } from '@parley/kit/auth/authenticate'
import type { Caller } from '@parley/kit/auth/caller'
import type { Introspection } from '@parley/kit/auth/introspection'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { hashOf, type Recipient, type SubjectToken } from '../../oauth/token-exchange.ts'
import { isExternal, mayActForCallers } from '../../registry/admission.ts'
import { type AgentEntry, audienceNamesOf } from '../../registry/entry.ts'

/** The token of a request. No agent receives it: the gateway exchanges it for each agent. */
export interface CallerToken {
  caller: Caller
  subject: SubjectToken
}

/** The names of the gateway in a token's audience. The first one is its public URL. */
export type GatewayNames = readonly [url: string, ...others: string[]]

/**
 * `exchange`: the agent receives a token that was exchanged for it. `omit`: the agent receives no token.
 * `wrong_audience`, `operator_token`: the request is not forwarded.
 */
export type TokenDecision = 'exchange' | 'omit' | 'wrong_audience' | 'operator_token'

type TokenAgent = Pick<
  AgentEntry,
  'slug' | 'did' | 'url' | 'card' | 'origin' | 'own' | 'verified' | 'admitted' | 'admittedBy' | 'relay'
>

declare module 'fastify' {
  interface FastifyRequest {
    /** Set after the introspection of the token. */
    token?: CallerToken
  }
}

/** Of the tokens whose introspection is cached. */
const subjects = new WeakMap<Introspection, SubjectToken>()

export function callerTokenOf({ credentials, ...caller }: AuthenticatedCaller): CallerToken {
  const { token: text, introspection } = credentials
  let subject = subjects.get(introspection)
  if (subject?.text !== text) {
    subject = { text, hash: hashOf(text), introspection }
    subjects.set(introspection, subject)
  }
  return { caller, subject }
}

export function isOperator({ caller }: CallerToken): boolean {
  return caller.scopes.has('agent:admin')
}

/** The rule for every request that the gateway sends to an agent (spec/authentication.md#tokens-through-the-gateway). */
export function tokenDecision(
  entry: TokenAgent,
  token: CallerToken | undefined,
  gateway: GatewayNames,
): TokenDecision {
  if (token === undefined || !takesToken(entry)) return 'omit'
  if (isOperator(token)) return 'operator_token'
  return isForRecipient(entry, token, gateway) ? 'exchange' : 'wrong_audience'
}

/** Whether the agent receives tokens at all. External agents receive none unless their card declares a bearer scheme. */
export function takesToken(entry: TokenAgent): boolean {
  return !isExternal(entry) || declaresBearer(entry.card)
}

/**
 * Whether the audience of the token, if it has one, names the gateway or the agent. A token that was exchanged must name
 * the gateway: the agent that received it must not send it back as the token of a caller.
 */
export function isForRecipient(
  entry: TokenAgent,
  { caller: { audience = [], actors } }: CallerToken,
  gateway: GatewayNames,
): boolean {
  if (audience.length === 0) return actors === undefined
  const names = [...gateway, ...(actors === undefined ? namesOf(entry, gateway) : [])].map(withoutSlash)
  return audience.some((name) => names.includes(withoutSlash(name)))
}

export function recipientOf(
  entry: TokenAgent & Pick<AgentEntry, 'id' | 'left' | 'quarantine'>,
  gateway: GatewayNames,
): Recipient {
  return {
    id: entry.id,
    resource: resourceOf(entry),
    // Tokens for the agent's MCP endpoint are exchanged only for requests that arrived there.
    names: [...namesOf(entry, gateway), `${withoutSlash(gateway[0])}/agents/${entry.slug}/mcp`],
    mayAct: mayActForCallers(entry),
  }
}

/** The audience of the agent's tokens, which is also the OAuth parameter `resource` for a token for this agent. */
export function resourceOf({ did, url, verified }: Pick<AgentEntry, 'did' | 'url' | 'verified'>): string {
  return verified && did !== undefined ? did : url
}

/** HTTP 403 for a request whose token is not exchanged for the agent. The message explains how to get another token. */
export function tokenRefused(
  entry: TokenAgent,
  reason: Exclude<TokenDecision, 'exchange' | 'omit'>,
): ParleyError {
  const { slug } = entry
  const resource = resourceOf(entry)
  const how = `npx parley token --resource ${resource}, or the OAuth parameter resource=${resource}`
  const message =
    reason === 'operator_token'
      ? `A token with the scope agent:admin is valid for no agent, so the request was not forwarded to ${slug}: use a token without that scope`
      : `Your token is for another server than the gateway and agent ${slug}, so the request was not forwarded: get a token without an audience, or one for this agent (${how})`
  return new ParleyError('InsufficientPermissions', { message, data: { reason, agent: slug, resource } })
}

/** HTTP 403 for an operator token on a request that names no agent. */
export function operatorTokenRefused(): ParleyError {
  return new ParleyError('InsufficientPermissions', {
    message: 'A token with the scope agent:admin is valid for no agent: use a token without that scope',
    data: { reason: 'operator_token' },
  })
}

function namesOf(entry: TokenAgent, [gatewayUrl]: GatewayNames): string[] {
  return audienceNamesOf(entry, withoutSlash(gatewayUrl))
}

/** Whether the card declares a bearer token scheme, which A2A 0.3 and 1.0 spell differently. */
function declaresBearer(card: AgentEntry['card'] | undefined): boolean {
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
