import type { Introspection, Introspector } from '@parley/kit/auth/introspection'
import { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import type { FastifyInstance } from 'fastify'
import { Provider } from 'oidc-provider'
import type { ClientMetadata } from './client-route.ts'
import { isLoopback } from './client-rules.ts'
import { type ClientCredentials, Clients, type EnsureClient } from './clients.ts'
import { introspect } from './introspect.ts'
import type { IntrospectionRouteOptions } from './introspection-route.ts'
import { loadInitialAccessToken, loadOAuthKeys, loadSignInCode } from './key-files.ts'
import type { KeysOf } from './key-rules.ts'
import { listenerFor, mountOAuth, type NodeListener } from './mount.ts'
import type { OAuthStore } from './oauth-store.ts'
import { oidcConfiguration } from './oidc-configuration.ts'
import { logEvents } from './oidc-events.ts'
import { amendAnswers } from './oidc-middleware.ts'
import { keepRegistrationBytes } from './possession.ts'
import { SignIn } from './sign-in.ts'

export interface IdentityProviderOptions {
  /**
   * Address of the server with its path, without a slash at the end, for example `http://127.0.0.1:7400/oauth2`. Its
   * metadata (RFC 8414) stands at `/.well-known/oauth-authorization-server/oauth2`, at
   * `/oauth2/.well-known/oauth-authorization-server`, and at `/.well-known/oauth-authorization-server` with the origin as
   * issuer. Every address that
   * the server gives out is made of it, whatever `Host` or a proxy says; where it is https, cookies are `Secure`.
   */
  issuer: string
  store: OAuthStore
  /** Folder of the secrets (mode 0600): signing and cookie keys, sign-in code, initial access token. */
  keysDir: string
  log: Log
  production: boolean
  /** Clients that registered themselves and may check tokens all the same: agents that were admitted. */
  isTrusted?: (clientId: string) => boolean
  /** The keys that the document of a did:web lists, resolved behind the private-address guard. Default: none. */
  keysOf?: KeysOf
}

/** The OAuth 2.0 server for a machine that has none, in the gateway's own process. */
export interface IdentityProvider extends Introspector, AsyncDisposable {
  readonly issuer: string
  /** For requests to the issuer's path and to the well-known paths; the body must still be unread. */
  readonly callback: NodeListener
  /**
   * Adds the routes to the gateway's server, before it listens.
   * @param watch `checkerIsKnown` is told of credentials whether they may introspect, each time
   */
  mount(app: FastifyInstance, watch?: Pick<IntrospectionRouteOptions, 'checkerIsKnown'>): void
  /** Makes or updates a client of the gateway's own; the same call again changes nothing and gives the same secret. */
  ensureClient(client: EnsureClient): Promise<ClientCredentials>
  /** What a registration must show; the same at every start. */
  initialAccessToken(): Promise<string>
  /** RFC 7662 for access tokens, without HTTP. */
  introspect(token: string): Promise<Introspection>
  clientMetadata(clientId: string): Promise<ClientMetadata | undefined>
  /** Removes what expired more than an hour ago; also done by itself every ten minutes. Returns how many. */
  sweep(): Promise<number>
}

const sweepEveryMs = 600_000
const sweepBatch = 1000
/** Expired tokens are kept as long, so that introspection can tell "expired" from "unknown". */
const keepExpiredSeconds = 3600

/** @throws Error when a file in `keysDir` is not ours or the issuer is not an address. */
export async function createIdentityProvider(options: IdentityProviderOptions): Promise<IdentityProvider> {
  const { issuer, store, keysDir, log, keysOf = async () => [] } = options
  const prefix = new URL(issuer).pathname.replace(/\/+$/, '')
  const [keys, signInCode, initialAccessToken] = await Promise.all([
    loadOAuthKeys(keysDir),
    loadSignInCode(keysDir),
    loadInitialAccessToken(keysDir),
  ])
  const provider = new Provider(
    issuer,
    oidcConfiguration({ issuer, prefix, store, keys, initialAccessToken, keysOf }),
  )
  // Believes the X-Forwarded-* headers that mount.ts writes; those of the request never get here.
  provider.proxy = true
  keepRegistrationBytes(provider)
  amendAnswers(provider)
  const audit = new Audit(log)
  logEvents(provider, log, audit)
  if (options.production && issuer.startsWith('http:') && !isLoopback(issuer)) {
    log.warn({ issuer }, 'OAuth without TLS: secrets and tokens can be read on the way')
  }
  const signIn = new SignIn(signInCode, store)
  const clients = new Clients(provider, store)
  const metadataOf = (clientId: string) => clientMetadata(provider, clientId)
  const handle = provider.callback()
  const callback = listenerFor(issuer, (request, response) => void handle(request, response))
  const sweep = () => sweepAll(store)
  const timer = setInterval(() => {
    sweep().catch((error: unknown) => log.error({ err: error }, 'sweep of expired OAuth records failed'))
  }, sweepEveryMs).unref()
  return {
    issuer,
    callback,
    mount: (app, watch) =>
      mountOAuth(app, {
        provider,
        store,
        isTrusted: options.isTrusted,
        signIn,
        audit,
        log,
        prefix,
        listener: callback,
        metadataOf,
        ...watch,
      }),
    ensureClient: (client) => clients.ensure(client),
    initialAccessToken: async () => initialAccessToken,
    introspect: (token) => introspect(provider, token),
    clientMetadata: metadataOf,
    sweep,
    [Symbol.asyncDispose]: async () => clearInterval(timer),
  }
}

async function clientMetadata(provider: Provider, clientId: string): Promise<ClientMetadata | undefined> {
  const client = await provider.Client.find(clientId)
  if (client === undefined) return undefined
  const metadata: ClientMetadata = { clientId, scope: client.scope ?? '' }
  if (client.clientName !== undefined) metadata.clientName = client.clientName
  if (typeof client['public_key'] === 'string') metadata.publicKey = client['public_key']
  return metadata
}

async function sweepAll(store: OAuthStore): Promise<number> {
  const before = Math.floor(Date.now() / 1000) - keepExpiredSeconds
  let swept = 0
  for (;;) {
    const batch = await store.sweepExpired(before, sweepBatch)
    swept += batch
    if (batch < sweepBatch) return swept
  }
}
