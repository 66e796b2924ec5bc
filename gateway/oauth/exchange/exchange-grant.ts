import type { Audit } from '@parley/kit/process/audit'
import { type Client, errors, type Provider, type TokenEndpointGrantContext } from 'oidc-provider'
import validateDpop, { checkDpopReplay } from 'oidc-provider/lib/helpers/validate_dpop.js'
import { requireAllowedResource } from '../clients/client-settings.ts'
import { delegatesOf, type TokenIntrospection } from '../introspect.ts'
import type { OAuthStore } from '../oauth-store.ts'
import { resourceServer } from '../oidc/policies.ts'
import { addressOf } from '../request-address.ts'
import { ExchangeRefused, type RefusalReason, type TokenExchanger } from './embedded-exchange.ts'

export const exchangeGrantType = 'urn:ietf:params:oauth:grant-type:token-exchange'
/** An operator gives this tag to other clients that may use the grant. */
export const exchangeTag = 'token-exchange'
export const accessTokenType = 'urn:ietf:params:oauth:token-type:access_token'

export interface ExchangeGrantOptions {
  introspection: TokenIntrospection
  exchanger: TokenExchanger
  store: OAuthStore
  /** The issuer of this server, for which an actor token may be restricted. */
  issuer: string
  /** Whether the client may act for other clients. */
  mayAct: (clientId: string) => Promise<boolean>
  /** Returns the names by which an audience may name the client's agent, beyond the client id. */
  namesOf: (clientId: string) => readonly string[]
  audit: Audit
}

type Parameter =
  | 'subject_token'
  | 'subject_token_type'
  | 'actor_token'
  | 'actor_token_type'
  | 'requested_token_type'
  | 'scope'
/** `resource` and `audience` are arrays if the request contains them several times. */
type Parameters = Partial<Record<Parameter, string> & Record<'resource' | 'audience', string | string[]>>
type Context = TokenEndpointGrantContext<Parameters>

const parameters = [
  'subject_token',
  'subject_token_type',
  'actor_token',
  'actor_token_type',
  'requested_token_type',
  'scope',
  'resource',
  'audience',
]
/** The longest subject or actor token. */
const grantTokenMaxChars = 8192

/**
 * Adds the token exchange grant (RFC 8693) to the token endpoint. The authenticated client is the actor. Agents may use
 * the grant without having registered it, so a client's `grant_types` do not decide here.
 */
export function addExchangeGrant(provider: Provider, options: ExchangeGrantOptions): void {
  provider.registerGrantType<Parameters>(exchangeGrantType, (ctx) => exchange(ctx, options), parameters, [
    'resource',
    'audience',
  ])
  Object.defineProperty(provider.Client.prototype, 'grantTypeAllowed', {
    value(this: Client, type: string) {
      return type === exchangeGrantType || this.grantTypes?.includes(type) === true
    },
  })
}

async function exchange(ctx: Context, options: ExchangeGrantOptions): Promise<void> {
  const { client, params, provider } = ctx.oidc
  const { exchanger, mayAct, namesOf, audit, store } = options
  // A client with such an id would be taken for a gateway, which acts for no client.
  if (delegatesOf([client.clientId]).length === 0)
    throw new errors.UnauthorizedClient('a client whose id is an http address cannot exchange tokens')
  if (client.clientAuthMethod === 'none')
    throw new errors.UnauthorizedClient('token exchange requires client authentication')
  if (!(await mayAct(client.clientId)))
    throw new errors.UnauthorizedClient(
      `this client may not exchange tokens: ask the operator to admit its agent, or to run npx parley clients tag ${client.clientId} ${exchangeTag}`,
    )
  const subject = requireToken(params.subject_token, params.subject_token_type, 'subject_token')
  if (params.requested_token_type !== undefined && params.requested_token_type !== accessTokenType)
    refuse(`requested_token_type must be ${accessTokenType}`)
  const names = [client.clientId, ...namesOf(client.clientId)]
  await checkActorToken(params, { subject, client, names }, options)
  const resource = requestedResource(params, options.issuer)
  await requireAllowedResource(store, client.clientId, resource)
  const proof = await validateDpop(provider, ctx)
  await checkDpopReplay(provider, ctx, proof, client.clientId)
  if (proof === undefined && client.dpopBoundAccessTokens === true)
    throw new errors.InvalidDpopProof(
      'this client registered dpop_bound_access_tokens: send a DPoP proof with the request',
    )
  try {
    const token = await exchanger.exchange({
      subject,
      actor: client.clientId,
      names,
      resource,
      scope: params.scope,
      actorScope: client.scope,
      jkt: proof?.thumbprint,
    })
    audit.record({
      who: client.clientId,
      address: addressOf(ctx.req),
      action: 'oauth.exchange',
      target: resource,
      allowed: true,
      reason: `for ${token.clientId}: ${token.scope}`,
    })
    ctx.body = {
      access_token: token.text,
      issued_token_type: accessTokenType,
      token_type: proof === undefined ? 'Bearer' : 'DPoP',
      expires_in: Math.max(0, token.exp - Math.floor(Date.now() / 1000)),
      scope: token.scope,
    }
  } catch (error) {
    throw error instanceof ExchangeRefused ? refusalOf(error) : error
  }
}

function requireToken(token: string | undefined, type: string | undefined, name: string): string {
  if (token === undefined || token === '') refuse(`${name} is missing`)
  if (type !== accessTokenType) refuse(`${name}_type must be ${accessTokenType}`)
  if (token.length > grantTokenMaxChars) refuse(`${name} is too long`)
  return token
}

/** The actor is the authenticated client. An actor token is optional, and must show the same client. */
async function checkActorToken(
  { actor_token: token, actor_token_type: type }: Parameters,
  { subject, client, names }: { subject: string; client: Client; names: readonly string[] },
  { introspection, issuer }: ExchangeGrantOptions,
): Promise<void> {
  if (token === undefined) {
    if (type !== undefined) refuse('actor_token_type requires an actor_token')
    return
  }
  const actor = requireToken(token, type, 'actor_token')
  if (actor === subject) refuse('actor_token must not be the subject_token')
  const { answer } = await introspection.introspect(actor)
  if (!answer.active) refuse('actor_token is not active: omit it, or get a new token for the acting client')
  if (answer.act !== undefined)
    refuse('actor_token was itself exchanged: omit it, or use a token that the acting client requested')
  if (answer.client_id !== client.clientId)
    refuse('actor_token belongs to another client: omit it, or use a token of the authenticated client')
  const audience = [answer.aud ?? []].flat()
  const accepted = [issuer, new URL(issuer).origin, ...names]
  if (audience.length > 0 && !audience.some((name) => accepted.includes(name)))
    refuse('actor_token is for another audience: omit it, or use a token without an audience')
}

/** `audience` is another name of `resource`, because each server has one name here (RFC 8693, section 2.1). */
function requestedResource({ resource, audience }: Parameters, issuer: string): string {
  const named = new Set([resource ?? [], audience ?? []].flat().filter((name) => name !== ''))
  const [one, ...others] = named
  if (one === undefined || others.length > 0)
    throw new errors.InvalidTarget('request exactly one resource: the address or DID of the server to call')
  return resourceServer(one, issuer).audience
}

export const errorCodes: Record<RefusalReason, string> = {
  expired: 'invalid_request',
  inactive: 'invalid_request',
  operator_token: 'invalid_scope',
  wrong_audience: 'invalid_request',
  chain_too_long: 'invalid_request',
  already_in_chain: 'invalid_request',
  bound_to_key: 'invalid_request',
  no_scope: 'invalid_scope',
  not_operator: 'invalid_scope',
  too_large: 'invalid_target',
  resource: 'invalid_target',
}

/** An unusable subject token is an invalid request (RFC 8693, section 2.2.2). */
function refusalOf({ reason, message }: ExchangeRefused): errors.CustomOIDCProviderError {
  return new errors.CustomOIDCProviderError(errorCodes[reason], message)
}

function refuse(description: string): never {
  throw new errors.InvalidRequest(description)
}
