import { hkdfSync } from 'node:crypto'
import { proofAlgorithms } from '@parley/kit/auth/dpop'
import type { ClientAuthMethod, Configuration } from 'oidc-provider'
import { assertionAlgorithms, checkAssertion } from '../client-assertions.ts'
import { defaultScope, extraMetadata, identityScopes, requestedClientId, scopes } from '../client-rules.ts'
import { requireAllowedResource } from '../clients/client-settings.ts'
import type { MetadataDocuments } from '../clients/metadata-documents.ts'
import { isOpenRegistration, type OpenRegistration } from '../clients/open-registration.ts'
import { newSecret, type OAuthKeys } from '../key-files.ts'
import { type KeysOf, readListedKeys } from '../key-rules.ts'
import type { RevocationRate } from '../leases/revocations.ts'
import type { OAuthStore } from '../oauth-store.ts'
import { issuerParameter } from '../origin-issuer.ts'
import { partiesOf, requireResource, type TokenPolicy } from '../token-policy.ts'
import { oidcAdapter } from './adapter.ts'
import {
  applyDefaultScope,
  type IsTrusted,
  introspectionPolicy,
  renderError,
  resourceServer,
  validateClient,
} from './policies.ts'

/** The only account, which belongs to the person who knows the machine's sign-in code. */
export const operatorAccount = 'operator'

/** The methods by which a client authenticates, apart from public clients. */
const authenticated = [
  'client_secret_basic',
  'client_secret_post',
  'private_key_jwt',
] satisfies ClientAuthMethod[]
const hourSeconds = 3600
const daySeconds = 24 * hourSeconds

export interface ConfigurationOptions {
  issuer: string
  /** The path of the issuer, for example `/oauth2`. */
  prefix: string
  store: OAuthStore
  keys: OAuthKeys
  initialAccessToken: string
  /** Returns the keys that a did:web document lists. */
  keysOf: KeysOf
  isTrusted: IsTrusted | undefined
  /** By default, every client gets tokens for every server. */
  policy?: TokenPolicy | undefined
  revocationRate: RevocationRate
  /** Clients that describe themselves by a document. By default, there are none. */
  documents?: MetadataDocuments | undefined
  /** Registration without an initial access token. By default, it is disabled. */
  openRegistration?: OpenRegistration | undefined
}

/** Returns the configuration of oidc-provider, with all unused features disabled. */
export function oidcConfiguration(options: ConfigurationOptions): Configuration {
  return {
    adapter: oidcAdapter(options.store),
    jwks: options.keys.jwks as NonNullable<Configuration['jwks']>,
    cookies: cookies(options),
    routes: {
      authorization: '/authorize',
      token: '/token',
      introspection: '/introspect',
      revocation: '/revoke',
      registration: '/register',
      jwks: '/jwks',
    },
    features: features(options),
    scopes: [...scopes, ...identityScopes],
    claims: {},
    responseTypes: ['code'],
    clientAuthMethods: [...authenticated, 'none'],
    assertJwtClientAuthClaimsAndHeader: checkAssertion,
    clientDefaults: { scope: defaultScope, id_token_signed_response_alg: 'ES256' },
    enabledJWA: {
      idTokenSigningAlgValues: ['ES256'],
      clientAuthSigningAlgValues: assertionAlgorithms,
      dPoPSigningAlgValues: proofAlgorithms,
    },
    discovery: {
      introspection_endpoint_auth_methods_supported: authenticated,
      revocation_endpoint_auth_methods_supported: [...authenticated, 'none'],
      // Not part of RFC 8414. Servers that verify signed requests read the clients' keys from this URL.
      parley_client_metadata_uri_template: `${options.issuer}/clients/{client_id}`,
    },
    extraClientMetadata: { properties: extraMetadata, validator: validateClient },
    pkce: { required: () => true },
    extraParams: [issuerParameter],
    interactions: { url: (_ctx, { uid }) => `${options.prefix}/interaction/${uid}` },
    findAccount: (_ctx, id) =>
      id === operatorAccount ? { accountId: id, claims: () => ({ sub: id }) } : undefined,
    // Earlier approvals are not reused, so each authorization requires a new approval.
    loadExistingGrant: async (ctx) => {
      const grantId = ctx.oidc.result?.consent?.grantId
      return grantId === undefined ? undefined : ctx.oidc.provider.Grant.find(grantId)
    },
    issueRefreshToken: (_ctx, client) => client.grantTypeAllowed('refresh_token'),
    expiresWithSession: () => false,
    rotateRefreshToken: true,
    // Browsers send `Origin` even from this server's own pages. Pages of other origins get no tokens.
    clientBasedCORS: (_ctx, origin) => origin === new URL(options.issuer).origin,
    clockTolerance: 0,
    ttl: {
      AccessToken: hourSeconds,
      ClientCredentials: hourSeconds,
      AuthorizationCode: 60,
      RefreshToken: 14 * daySeconds,
      Grant: 30 * daySeconds,
      Interaction: 600,
      Session: 600,
      IdToken: hourSeconds,
    },
    fetch: options.documents?.fetch ?? (() => Promise.reject(new Error('outgoing requests are disabled'))),
    renderError,
  }
}

function nonceSecret({ cookieKeys: [key = ''] }: OAuthKeys): Buffer {
  return Buffer.from(hkdfSync('sha256', key, '', 'parley dpop nonce v1', 32))
}

function cookies({ prefix, keys }: ConfigurationOptions): NonNullable<Configuration['cookies']> {
  return {
    keys: keys.cookieKeys,
    names: { session: 'parley_session', interaction: 'parley_interaction', resume: 'parley_resume' },
    long: { httpOnly: true, sameSite: 'lax', path: prefix || '/' },
    short: { httpOnly: true, sameSite: 'lax' },
  }
}

function features({
  issuer,
  initialAccessToken,
  keysOf,
  keys,
  store,
  isTrusted,
  policy,
  revocationRate,
  documents,
  openRegistration,
}: ConfigurationOptions): NonNullable<Configuration['features']> {
  return {
    devInteractions: { enabled: false },
    userinfo: { enabled: false },
    rpInitiatedLogout: { enabled: false },
    pushedAuthorizationRequests: { enabled: false },
    // Nonces are offered and not required. All gateways with the same keys accept them.
    dPoP: { enabled: true, nonceSecret: nonceSecret(keys), requireNonce: () => false },
    clientCredentials: { enabled: true },
    introspection: { enabled: true, allowedPolicy: introspectionPolicy(isTrusted) },
    revocation: {
      enabled: true,
      allowedPolicy: (ctx, client, token) =>
        token.clientId === client.clientId && revocationRate.allows(ctx, client.clientId),
    },
    registration: {
      enabled: true,
      initialAccessToken,
      // An id that begins with "-" would be taken for an option on a command line.
      idFactory: (ctx) => requestedClientId(ctx) ?? newSecret().slice(0, 22).replace(/^-/, 'A'),
      secretFactory: newSecret,
      // Called after the initial access token is checked and before the metadata is validated synchronously.
      issueRegistrationAccessToken: async (ctx) => {
        if (openRegistration !== undefined && isOpenRegistration(ctx)) {
          await openRegistration.prepare(ctx)
          return false
        }
        await readListedKeys(ctx, keysOf)
        return true
      },
    },
    ...(documents !== undefined && { clientIdMetadataDocument: documents.feature }),
    registrationManagement: { enabled: true, rotateRegistrationAccessToken: false },
    resourceIndicators: {
      enabled: true,
      // If several resources are granted, the client must choose one. Otherwise the request is refused.
      defaultResource: async (ctx, client, oneOf) => {
        applyDefaultScope(ctx, client)
        if (oneOf === undefined) await requireAllowedResource(store, client.clientId, undefined)
        return oneOf
      },
      getResourceServerInfo: async (ctx, resource, client) => {
        applyDefaultScope(ctx, client)
        await requireAllowedResource(store, client.clientId, resource)
        await requireResource(policy, resource, partiesOf(client.clientId, []))
        return resourceServer(resource, issuer)
      },
    },
  }
}
