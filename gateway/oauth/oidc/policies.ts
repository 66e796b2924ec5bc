import { canonicalResource } from '@parley/kit/auth/protected-resource'
import { type Client, type Configuration, errors, type KoaContextWithOIDC } from 'oidc-provider'
import { errorPage, pageHeaders } from '../approval/pages.ts'
import {
  checkClient,
  checkRegistration,
  extraMetadata,
  identityScopes,
  operatorScope,
  scopes,
} from '../client-rules.ts'
import { isOpenRegistration } from '../clients/open-registration.ts'
import { checkKeys } from '../key-rules.ts'
import { checkPossession } from '../possession.ts'

const resourceMaxChars = 2048
/** Routes that return HTML to browsers. */
const pageRoutes = ['authorization', 'resume']

/** Whether the client may introspect the tokens of other clients. */
export function checksTokens(client: Client, isTrusted: IsTrusted | undefined): boolean {
  return client['introspection'] === true || isTrusted?.(client.clientId) === true
}

/** Whether a self-registered client may introspect tokens because it is an admitted agent. */
export type IsTrusted = (clientId: string) => boolean

/**
 * Clients that check tokens may introspect all access tokens, and other authenticated clients only their own. Refresh
 * tokens are never reported as active, because they must not be accepted as access tokens.
 */
export function introspectionPolicy(isTrusted: IsTrusted | undefined) {
  return (
    _ctx: KoaContextWithOIDC,
    client: Client,
    token: { clientId?: string | undefined; kind: string },
  ): boolean => {
    if (client.clientAuthMethod === 'none') return false
    if (token.kind !== 'RefreshToken' && checksTokens(client, isTrusted)) return true
    return token.clientId === client.clientId
  }
}

/**
 * Gives a request without a scope the client's scope, except for the operator's (RFC 6749, section 3.3). OpenID Connect
 * scopes are omitted. @throws InvalidScope if no other scope is requested
 */
export function applyDefaultScope(ctx: KoaContextWithOIDC, client: Client): void {
  const { params, route } = ctx.oidc
  if (params === undefined) return
  if (typeof params['scope'] === 'string') {
    params['scope'] = withoutIdentityScopes(params['scope'])
    return
  }
  if (route !== 'authorization' && params['grant_type'] !== 'client_credentials') return
  const scope = client.scope?.split(' ').filter((name) => name !== operatorScope && !isIdentityScope(name))
  if (scope !== undefined && scope.length > 0) params['scope'] = scope.join(' ')
}

const isIdentityScope = (name: string) => identityScopes.includes(name)

function withoutIdentityScopes(scope: string): string {
  const names = scope.split(' ')
  const useful = names.filter((name) => !isIdentityScope(name))
  if (useful.length === 0 && names.length > 0)
    throw new errors.InvalidScope(
      'openid and offline grant no access here: request agent:read or agent:write',
      scope,
    )
  return useful.join(' ')
}

/**
 * Any server may be requested (RFC 8707). The token names the server in `aud` and is valid only there. Addresses at the origin of
 * this server have their canonical form in `aud`.
 */
export function resourceServer(
  resource: string,
  issuer: string,
): {
  scope: string
  audience: string
  accessTokenFormat: 'opaque'
} {
  const protocol = resource.length <= resourceMaxChars ? URL.parse(resource)?.protocol : undefined
  if (protocol === undefined || !['https:', 'http:', 'did:'].includes(protocol)) {
    throw new errors.InvalidTarget('resource must be an http, https or did address')
  }
  const isOwn = URL.parse(resource)?.origin === new URL(issuer).origin
  const audience = isOwn ? canonicalResource(resource) : resource
  return { scope: scopes.join(' '), audience, accessTokenFormat: 'opaque' }
}

/** `ctx` is present if a client registers or updates itself, and missing if the gateway creates or reads a client. */
export const validateClient: NonNullable<NonNullable<Configuration['extraClientMetadata']>['validator']> = (
  ctx,
  key,
  _value,
  metadata,
) => {
  // oidc-provider calls this once per extra property, but a single call validates all of them.
  if (key !== extraMetadata[0]) return
  checkClient(metadata)
  if (ctx === undefined) return
  checkRegistration(metadata, { isOpen: isOpenRegistration(ctx) })
  const currentKey = ctx.oidc.client?.['public_key']
  checkKeys(metadata, currentKey, ctx)
  checkPossession(metadata, currentKey, ctx)
}

const documentHelp =
  'The application identifies itself by the address of a document, which this server has to read: try again in a minute. Ask the developer of the application if it happens again.'
const clientErrors = ['invalid_client', 'invalid_client_metadata', 'invalid_redirect_uri']

export const renderError: NonNullable<Configuration['renderError']> = (ctx, out) => {
  if (pageRoutes.includes(ctx.oidc?.route)) {
    ctx.set(pageHeaders())
    const text = out.error_description ?? out.error
    const isAboutDocument =
      clientErrors.includes(out.error) && String(ctx.oidc.params?.['client_id']).startsWith('https:')
    ctx.body = errorPage(isAboutDocument ? `${text}. ${documentHelp}` : text)
  } else {
    ctx.body = out
  }
}
