import type { Introspection, Introspector } from '@parley/kit/auth/introspection'
import { Audit } from '@parley/kit/process/audit'
import type { Log } from '@parley/kit/process/log'
import type { FastifyInstance } from 'fastify'
import { Provider } from 'oidc-provider'
import type { SecretFiles } from '../keys/secret-files.ts'
import { Accounts } from './accounts/accounts.ts'
import { accountClients, passwordSignIn } from './accounts/console-client.ts'
import { SignIn } from './approval/sign-in.ts'
import { acceptOriginAsAudience } from './client-assertions.ts'
import type { ClientMetadata } from './client-route.ts'
import { isLoopback } from './client-rules.ts'
import { ClientDirectory } from './clients/client-directory.ts'
import { commonScope, findSettings, findUsableClient } from './clients/client-settings.ts'
import { ClientUses } from './clients/client-uses.ts'
import { LongLivedKeys } from './clients/long-lived-keys.ts'
import { type FetchDocument, MetadataDocuments } from './clients/metadata-documents.ts'
import { OpenRegistration } from './clients/open-registration.ts'
import { type ClientCredentials, Clients, type ManagedClient } from './clients.ts'
import { TokenExchanger } from './exchange/embedded-exchange.ts'
import { addExchangeGrant, exchangeTag } from './exchange/exchange-grant.ts'
import { SealedTokens } from './exchange/sealed-tokens.ts'
import { type Introspected, TokenIntrospection } from './introspect.ts'
import type { IntrospectionRouteOptions } from './introspection-route.ts'
import { loadInitialAccessToken, loadOAuthKeys, loadSignInCode, type OAuthKeys } from './key-files.ts'
import type { KeysOf } from './key-rules.ts'
import { coherentStore } from './leases/coherent-store.ts'
import type { LeaseRecords } from './leases/lease-records.ts'
import { type Leases, OwnLeases } from './leases/leases.ts'
import { OwnIntrospector } from './leases/own-introspector.ts'
import { RevocationRate } from './leases/revocations.ts'
import { SharedLeases } from './leases/shared-leases.ts'
import { listenerFor, mountOAuth, type NodeListener } from './mount.ts'
import type { OAuthStore } from './oauth-store.ts'
import { type ConfigurationOptions, oidcConfiguration } from './oidc/configuration.ts'
import { logEvents } from './oidc/events.ts'
import { amendAnswers } from './oidc/middleware.ts'
import { keepRegistrationBytes } from './possession.ts'
import { withRequestDeadline } from './request-deadline.ts'
import type { TokenPolicy } from './token-policy.ts'

export interface IdentityProviderOptions {
  /**
   * The issuer URL without a trailing slash, for example `http://127.0.0.1:7400/oauth2`. Its metadata (RFC 8414) is served
   * at `/.well-known/oauth-authorization-server/oauth2` and `/oauth2/.well-known/oauth-authorization-server`. At
   * `/.well-known/oauth-authorization-server`, the metadata names the origin as issuer. All published URLs derive from
   * the issuer URL, whatever the `Host` and proxy headers. If it uses https, cookies are `Secure`.
   */
  issuer: string
  store: OAuthStore
  /** Leases that other gateways on the store grant. Undefined if this is the only gateway. */
  leaseRecords?: LeaseRecords | undefined
  /** The folder of the signing and cookie keys, the sign-in code and the initial access token. */
  files: SecretFiles
  log: Log
  production: boolean
  /** Whether a self-registered client may introspect tokens because it is an admitted agent. */
  isTrusted?: (clientId: string) => boolean
  /** Whether the client is an agent that may not act for other clients, although the gateway runs it. */
  isBarred?: (clientId: string) => boolean
  /** Returns the names by which an audience may name the client's agent, beyond the client id. */
  namesOf?: (clientId: string) => readonly string[]
  /** The policies of the agents. By default, every client may use every agent. */
  policy?: TokenPolicy
  /** Whether public clients may register without the initial access token. By default, they may not. */
  openRegistration?: boolean
  /** Reads the metadata documents of clients. By default, a client cannot use the address of a document as its id. */
  fetchDocument?: FetchDocument | undefined
  /** Reads the keys in a did:web document through the private-address guard. By default, no keys are found. */
  keysOf?: KeysOf
}

/** The embedded OAuth 2.0 server, which runs in the gateway's process. */
export interface IdentityProvider extends Introspector, AsyncDisposable {
  readonly issuer: string
  /** Handles requests to the issuer's path and the well-known paths. The request body must still be unread. */
  readonly callback: NodeListener
  /**
   * Adds the routes to the gateway's server, which must not be listening yet.
   * @param watch its `onClientChecked` is called with credentials and whether they may introspect
   */
  mount(app: FastifyInstance, watch?: Pick<IntrospectionRouteOptions, 'onClientChecked'>): void
  /** Creates or updates a managed client. The call is idempotent and returns the same secret. */
  ensureClient(client: ManagedClient): Promise<ClientCredentials>
  /** Returns the token required for client registration, which survives restarts. */
  initialAccessToken(): Promise<string>
  /**
   * Introspects an access token as in RFC 7662, but without HTTP. With several gateways on one database, the responses
   * are cached under a lease (docs/decisions/0023-coherent-introspection.md#several-gateways).
   */
  introspect(token: string): Promise<Introspection>
  /** Works like `introspect`, and also returns everything on which the answer depends. */
  introspectWithTags(token: string): Promise<Introspected>
  readonly exchanger: TokenExchanger
  clientMetadata(clientId: string): Promise<ClientMetadata | undefined>
  readonly clients: ClientDirectory
  /** The accounts of the people who may sign in to the console. */
  readonly accounts: Accounts
  /**
   * Issues a token with client credentials to a client, with those of the scopes that the client may use. Returns undefined
   * if the client may use none, or was revoked.
   */
  issueToken(clientId: string, scopes: string): Promise<string | undefined>
  readonly keys: LongLivedKeys
  /**
   * Invalidates all introspection responses with any of these tags, after the change that makes them outdated. Resolves
   * when no server uses such a response any longer, after two seconds at the latest.
   */
  invalidate(tags: readonly string[]): Promise<void>
  /** Removes records that expired more than an hour ago and returns their number. It runs every ten minutes. */
  sweep(): Promise<number>
}

const sweepEveryMs = 600_000
const sweepBatch = 1000
/** How long expired tokens are kept, so that introspection can distinguish them from unknown tokens. */
const keepExpiredSeconds = 3600

/** @throws Error or KeysRefused for an invalid file, Error for an invalid issuer */
export async function createIdentityProvider(options: IdentityProviderOptions): Promise<IdentityProvider> {
  const { issuer, files, log, isTrusted, policy, keysOf = async () => [], namesOf = () => [] } = options
  const prefix = new URL(issuer).pathname.replace(/\/+$/, '')
  const { keys, signInCode, initialAccessToken } = await loadSecrets(files)
  const leases = await openLeases(options)
  const store = coherentStore(options.store, leases)
  const requestStore = coherentStore(withRequestDeadline(options.store), leases)
  const uses = new ClientUses(store, log)
  const revocationRate = new RevocationRate()
  const served = { issuer, prefix, keysOf, isTrusted, policy, revocationRate, store: requestStore }
  const unverified = unverifiedClients(options, requestStore)
  const provider = openProvider({ ...served, ...unverified, keys, initialAccessToken }, uses)
  const exchange = tokenExchange({ ...options, store: requestStore }, keys, uses)
  const { introspection, exchanger } = exchange
  const audit = new Audit(log)
  addExchangeGrant(provider, { ...exchange, store: requestStore, issuer, namesOf, audit })
  const clientKeys = new LongLivedKeys(store)
  const amended = { introspection, exchanger, keys: clientKeys, isTrusted, audit, leases, revocationRate }
  amendAnswers(provider, { ...amended, store: requestStore })
  logEvents(provider, log, audit)
  if (options.production) warnWithoutTls(issuer, log)
  const metadataOf = (clientId: string) => clientMetadata(provider, clientId)
  const managedClients = new Clients(provider, store)
  const clients = new ClientDirectory(store, uses)
  const accounts = new Accounts(store, accountClients(managedClients, clients))
  const people = { accounts, signIn: passwordSignIn(accounts, store) }
  const callback = listenerOf(provider)
  const sweeping = sweepRegularly(store, log)
  const introspector = new OwnIntrospector(introspection, leases, (client) => uses.note('lastUsedAt', client))
  const signIn = new SignIn(signInCode, store)
  const agentAt = (resource: string) => policy?.agentAt?.(resource)
  const pages = { signIn, people, agentAt, metadataOf, listener: callback, prefix }
  const mounted = { ...pages, provider, introspection, leases, store, isTrusted, audit, log }
  return {
    issuer,
    callback,
    mount: (app, watch) => mountOAuth(app, { ...mounted, ...watch }),
    ensureClient: managedClients.ensure.bind(managedClients),
    initialAccessToken: async () => initialAccessToken,
    introspect: (token) => introspector.introspect(token),
    introspectWithTags: (token) => introspection.introspect(token),
    exchanger,
    clientMetadata: metadataOf,
    clients,
    accounts,
    issueToken: (clientId, scopes) => issueToken(provider, clientId, scopes),
    keys: clientKeys,
    sweep: () => sweepAll(store),
    invalidate: (tags) => leases.invalidate(tags),
    [Symbol.asyncDispose]: () => closeInOrder(sweeping, introspector, leases),
  }
}

async function openLeases({ store, leaseRecords, log }: IdentityProviderOptions): Promise<Leases> {
  if (leaseRecords === undefined) return OwnLeases.open(store)
  const onFailure = (err: unknown) =>
    log.warn({ err }, 'introspection leases of the gateways could not be synchronized; no leases are granted')
  return new SharedLeases({ records: leaseRecords, onFailure })
}

function warnWithoutTls(issuer: string, log: Log): void {
  if (issuer.startsWith('http:') && !isLoopback(issuer))
    log.warn({ issuer }, 'OAuth without TLS: secrets and tokens can be intercepted')
}

async function loadSecrets(files: SecretFiles) {
  const [keys, signInCode, initialAccessToken] = await Promise.all([
    loadOAuthKeys(files),
    loadSignInCode(files.dir),
    loadInitialAccessToken(files.dir),
  ])
  return { keys, signInCode, initialAccessToken }
}

async function closeInOrder(sweeping: Disposable, ...parts: AsyncDisposable[]): Promise<void> {
  sweeping[Symbol.dispose]()
  for (const part of parts) await part[Symbol.asyncDispose]()
}

/** The ways in which clients use this server that no operator has registered. */
function unverifiedClients(
  { openRegistration, fetchDocument }: IdentityProviderOptions,
  store: OAuthStore,
): Pick<ConfigurationOptions, 'documents' | 'openRegistration'> {
  return {
    documents: fetchDocument && new MetadataDocuments(store, fetchDocument),
    openRegistration: openRegistration === true ? new OpenRegistration(store) : undefined,
  }
}

function listenerOf(provider: Provider): NodeListener {
  const handle = provider.callback()
  return listenerFor(provider.issuer, (request, response) => void handle(request, response))
}

interface Exchange {
  introspection: TokenIntrospection
  exchanger: TokenExchanger
  mayAct: (clientId: string) => Promise<boolean>
}

function tokenExchange(
  {
    store,
    isTrusted,
    isBarred,
    policy,
  }: Pick<IdentityProviderOptions, 'store' | 'isTrusted' | 'isBarred' | 'policy'>,
  { cookieKeys }: OAuthKeys,
  uses: ClientUses,
): Exchange {
  const sealed = new SealedTokens(cookieKeys)
  // Agents that the gateway runs or has admitted, and clients with the operator's tag, may act for other clients.
  const mayAct = async (clientId: string) => {
    const client = await findUsableClient(store, clientId)
    if (client === undefined || isBarred?.(clientId) === true) return false
    if (client['managed'] === true && client['introspection'] === true) return true
    if (isTrusted?.(clientId) === true) return true
    return (await findSettings(store, clientId))?.tags?.includes(exchangeTag) === true
  }
  const onUse = (clientId: string) => uses.note('lastUsedAt', clientId)
  const introspection = new TokenIntrospection({ store, sealed, mayAct, onUse, policy })
  return { introspection, exchanger: new TokenExchanger({ introspection, sealed, store, policy }), mayAct }
}

function openProvider(options: ConfigurationOptions, uses: ClientUses): Provider {
  const provider = new Provider(options.issuer, oidcConfiguration(options))
  // oidc-provider trusts the X-Forwarded-* headers that mount.ts sets in place of those of the request.
  provider.proxy = true
  options.openRegistration?.admit(provider, options.initialAccessToken)
  keepRegistrationBytes(provider)
  acceptOriginAsAudience(provider)
  provider.on('grant.success', ({ oidc }) => {
    if (oidc.client !== undefined) uses.note('lastTokenAt', oidc.client.clientId)
  })
  return provider
}

async function issueToken(provider: Provider, clientId: string, scopes: string): Promise<string | undefined> {
  const client = await provider.Client.find(clientId)
  const scope = commonScope(scopes, client?.scope ?? '')
  if (client === undefined || scope === '') return undefined
  return new provider.ClientCredentials({ client, scope }).save()
}

async function clientMetadata(provider: Provider, clientId: string): Promise<ClientMetadata | undefined> {
  // A client with a metadata document has no key here, and its document must not be read for this.
  if (clientId.startsWith('https:')) return undefined
  const client = await provider.Client.find(clientId)
  if (client === undefined) return undefined
  const metadata: ClientMetadata = { clientId, scope: client.scope ?? '' }
  if (client.clientName !== undefined) metadata.clientName = client.clientName
  if (typeof client['public_key'] === 'string') metadata.publicKey = client['public_key']
  return metadata
}

function sweepRegularly(store: OAuthStore, log: Log): Disposable {
  const timer = setInterval(() => {
    sweepAll(store).catch((error: unknown) =>
      log.error({ err: error }, 'cleanup of expired OAuth records failed'),
    )
  }, sweepEveryMs).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
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
