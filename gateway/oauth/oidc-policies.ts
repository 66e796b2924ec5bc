import { type Client, type Configuration, errors, type KoaContextWithOIDC } from 'oidc-provider'
import {
  checkClient,
  checkRegistration,
  extraMetadata,
  identityScopes,
  operatorScope,
  scopes,
} from './client-rules.ts'
import { checkKeys } from './key-rules.ts'
import { errorPage, pageHeaders } from './pages.ts'
import { checkPossession } from './possession.ts'

const resourceMaxChars = 2048
/** Where a person looks at the answer, not a program. */
const pageRoutes = ['authorization', 'resume']

/**
 * Servers that check tokens see every access token; any other client sees its own; who did not authenticate sees none. A
 * refresh token is never shown as active to a server that checks: it must not pass as an access token.
 */
export function mayIntrospect(
  _ctx: KoaContextWithOIDC,
  client: Client,
  token: { clientId?: string | undefined; kind: string },
): boolean {
  if (client.clientAuthMethod === 'none') return false
  if (client['introspection'] === true && token.kind !== 'RefreshToken') return true
  return token.clientId === client.clientId
}

/**
 * RFC 6749, section 3.3: a request without a scope gets the client's scope, less the operator's. The scopes of OpenID
 * Connect are left out.
 * @throws InvalidScope when the request has no other scope
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

function withoutIdentityScopes(asked: string): string {
  const names = asked.split(' ')
  const useful = names.filter((name) => !isIdentityScope(name))
  if (useful.length === 0 && names.length > 0)
    throw new errors.InvalidScope(
      'openid and offline unlock nothing here: ask for agent:read or agent:write',
      asked,
    )
  return useful.join(' ')
}

/** RFC 8707: any server may be named; the token then says so in `aud` and is good for nobody else. */
export function resourceServer(resource: string): {
  scope: string
  audience: string
  accessTokenFormat: 'opaque'
} {
  const protocol = resource.length <= resourceMaxChars ? URL.parse(resource)?.protocol : undefined
  if (protocol === undefined || !['https:', 'http:', 'did:'].includes(protocol)) {
    throw new errors.InvalidTarget('resource must be an http, https or did address')
  }
  return { scope: scopes.join(' '), audience: resource, accessTokenFormat: 'opaque' }
}

/** `ctx` is there when a client registers or updates itself, not when the gateway makes or reads one. */
export const validateClient: NonNullable<NonNullable<Configuration['extraClientMetadata']>['validator']> = (
  ctx,
  key,
  _value,
  metadata,
) => {
  // Called once per extra property; the checks look at the whole.
  if (key !== extraMetadata[0]) return
  checkClient(metadata)
  if (ctx === undefined) return
  checkRegistration(metadata)
  const known = ctx.oidc.client?.['public_key']
  checkKeys(metadata, known, ctx)
  checkPossession(metadata, known, ctx)
}

export const renderError: NonNullable<Configuration['renderError']> = (ctx, out) => {
  if (pageRoutes.includes(ctx.oidc?.route)) {
    ctx.set(pageHeaders())
    ctx.body = errorPage(out.error_description ?? out.error)
  } else {
    ctx.body = out
  }
}
