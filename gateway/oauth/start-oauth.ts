import { setTimeout as wait } from 'node:timers/promises'
import { type ClientKeys, HttpClientKeys, readPublicKey } from '@parley/kit/auth/client-keys'
import { clientMetadataUrl, missingClientMetadataUrl } from '@parley/kit/auth/client-metadata-url'
import { discover } from '@parley/kit/auth/discovery'
import { HttpIntrospector, type Introspector } from '@parley/kit/auth/introspection'
import type { Log } from '@parley/kit/process/log'
import { ConfigError } from '@parley/kit/process/settings'
import type { Addresses } from '../addresses.ts'
import type { GatewayConfig, GatewaySecrets } from '../config.ts'
import type { GatewayKeys } from '../keys/open-keys.ts'
import type { Claims } from '../store/claims.ts'
import { AccountTokens } from './accounts/account-tokens.ts'
import { Accounts } from './accounts/accounts.ts'
import { type ConsoleAccess, embeddedConsole, externalConsole } from './accounts/console-access.ts'
import type { FetchDocument } from './clients/metadata-documents.ts'
import { provideDevClient, provideOperatorClient } from './dev-client.ts'
import { DelegatedTokens } from './exchange/delegated-tokens.ts'
import { ExternalTokenExchange } from './exchange/external-exchange.ts'
import { StatementKeys } from './exchange/statement-keys.ts'
import { StatementSigner } from './exchange/statements.ts'
import { embeddedGatewayToken, GatewayTokens } from './gateway-tokens.ts'
import { createIdentityProvider, type IdentityProvider } from './identity-provider.ts'
import { secretsFingerprint } from './key-files.ts'
import type { LeaseRecords } from './leases/lease-records.ts'
import type { OAuthStore } from './oauth-store.ts'
import { encryptRecords } from './record-encryption.ts'
import { EmbeddedTokenExchange, type TokenExchange } from './token-exchange.ts'
import type { TokenPolicy } from './token-policy.ts'

/** The OAuth server that issues and introspects tokens, either the embedded one or the one named by OAUTH_ISSUER. */
export interface OAuth extends AsyncDisposable {
  issuer: string
  introspector: Introspector
  /** Undefined if the OAuth server does not publish client keys. */
  clientKeys: ClientKeys | undefined
  ping(): Promise<void>
  provider: IdentityProvider | undefined
  /** Exchanges callers' tokens for tokens that only one agent accepts. */
  tokenExchange: TokenExchange
  /** The keys of all statements of the gateway, also of operator statements. */
  signingKeys: Pick<StatementKeys, 'sign' | 'keySet'>
  /** Returns the public keys of the gateway's statements about callers. Undefined if it signs none. */
  statementKeys: (() => Promise<object>) | undefined
  /** Exchanges statements for agents that call other agents. Undefined if the gateway signs none. */
  delegated: Pick<DelegatedTokens, 'exchange'> | undefined
  /** The people who use the console, their sessions and tokens. */
  console: ConsoleAccess
  /** Returns a token of the gateway itself, with which it sends messages to agents. Undefined if its client was revoked. */
  gatewayToken: () => Promise<string | undefined>
}

export interface OAuthOptions {
  config: GatewayConfig
  secrets: GatewaySecrets
  state: {
    oauth: OAuthStore
    keys: GatewayKeys
    /** Undefined if the store is not shared with other gateways. */
    claims: Claims | undefined
    /** Undefined if the store is not shared with other gateways. */
    leases: LeaseRecords | undefined
    /** `cursorKey` returns a key that all gateways on the database share. */
    routing: { cursorKey(): Promise<Uint8Array> }
    ping(): Promise<void>
  }
  addresses: Addresses
  log: Log
  agents: {
    /** Whether the client is an agent that may introspect tokens and act for its callers. */
    isTrusted(clientId: string): boolean
    /** Returns the names by which an audience may name the client's agent. */
    namesOf(clientId: string): readonly string[]
    /** Whether the client is an agent that was quarantined by an operator or is not admitted. */
    isBarred(clientId: string): boolean
    /** Whether the client belongs to an agent that may act for its callers and, if given, that the audience names. */
    mayAct(clientId: string, audience?: string): boolean
    /** Whether the client belongs to an agent that an operator has quarantined, and to none that may act. */
    isQuarantined(clientId: string): boolean
  }
  /** The policies of the agents as recipients of tokens. By default, every client may use every agent. */
  access?: TokenPolicy
  trust: {
    /** Undefined if the gateway has no DID. An audience may name the gateway by its DID. */
    identity: { did: string } | undefined
    /** Returns the keys that a did:web document lists. */
    keysOf: (did: string) => Promise<readonly string[]>
    /** Reads a document from an address that a client chose. By default, none is read. */
    fetchDocument?: FetchDocument
  }
}

export async function startOAuth(options: OAuthOptions): Promise<OAuth> {
  const { config, state, addresses, log, trust } = options
  if (!config.embeddedOAuth) return remote(options)
  const { dataDir, production } = config
  const { files } = state.keys
  // Differs from the claim of versions that cannot read encrypted records, so that only one of the two can run.
  const identity = `${addresses.public} encrypted ${await secretsFingerprint(files)}`
  const claim = state.claims && (await claimServerIdentity(state.claims, identity, log))
  await encryptStoredSecrets(state.keys, log)
  const provider = await createIdentityProvider({
    issuer: `${addresses.public}/oauth2`,
    store: state.oauth,
    leaseRecords: state.leases,
    files,
    log,
    production,
    ...options.agents,
    ...(options.access !== undefined && { policy: options.access }),
    keysOf: trust.keysOf,
    openRegistration: config.openRegistration,
    fetchDocument: config.clientDocuments ? trust.fetchDocument : undefined,
  })
  await provideDevClient(provider, { dataDir, production, log })
  await provideOperatorClient(provider, dataDir)
  const signingKeys = await signingKeysOf(options)
  return {
    issuer: provider.issuer,
    introspector: provider,
    clientKeys: {
      publicKey: async (clientId) =>
        readPublicKey((await provider.clientMetadata(clientId))?.publicKey ?? ''),
    },
    provider,
    tokenExchange: new EmbeddedTokenExchange({
      exchanger: provider.exchanger,
      gatewayUrl: addresses.public,
      names: exchangeableNames(options),
    }),
    signingKeys,
    statementKeys: undefined,
    delegated: undefined,
    console: await embeddedConsole(provider, {
      store: state.oauth,
      secretKey: await state.keys.secretKey(await state.routing.cursorKey()),
      publicUrl: addresses.public,
    }),
    gatewayToken: embeddedGatewayToken(provider),
    // The embedded server depends only on this process and the store.
    ping: () => state.ping(),
    [Symbol.asyncDispose]: async () => {
      signingKeys[Symbol.dispose]()
      claim?.[Symbol.dispose]()
      await provider[Symbol.asyncDispose]()
    },
  }
}

/**
 * Encrypts the records and files of an earlier version, and completes an interrupted rotation. Call it while the claim
 * of the OAuth server is held, so that no gateway with that version runs.
 */
async function encryptStoredSecrets(keys: GatewayKeys, log: Log): Promise<void> {
  await keys.files.encryptPlaintext()
  const ring = await keys.ring()
  const done = await encryptRecords(keys.documents, ring)
  const { encrypted, renewed, unreadable } = done
  if (encrypted + renewed > 0) log.info({ encrypted, renewed }, 'stored OAuth records were encrypted')
  if (unreadable > 0) log.error({ unreadable }, 'stored OAuth records cannot be decrypted')
  if (!ring.summary.plaintext) return
  // The ring refuses plaintext only after this, so that an interrupted start repeats it.
  await keys.eraseFreed(log)
  await ring.refusePlaintext()
}

/** Lease of the claim that all gateways on a database share. It covers their OAuth issuer and secrets. */
const claimLeaseMs = 15_000

/** @throws ConfigError if a running gateway on this database has a different PUBLIC_URL or different secrets */
async function claimServerIdentity(claims: Claims, identity: string, log: Log): Promise<Disposable> {
  const name = 'oauth-server'
  const hold = () => claims.hold(name, identity, claimLeaseMs)
  const until = Date.now() + claimLeaseMs + 1000
  let held = await hold()
  // The claim of a gateway that has stopped lasts until its lease expires.
  for (; !held && Date.now() < until; held = await hold()) await wait(500)
  if (!held) {
    throw new ConfigError([
      'Another gateway on this database has a different PUBLIC_URL or different files in DATA_DIR/oauth, or an earlier version that cannot read encrypted records: give all gateways the same PUBLIC_URL and files, or stop the other gateway.',
    ])
  }
  let [failing, released] = [false, false]
  const renew = async () => {
    try {
      if (!(await hold()))
        log.error('another gateway on this database has a different OAuth issuer or different secrets')
      failing = false
    } catch (error) {
      if (!failing && !released) log.warn({ err: error }, 'claim of the OAuth server could not be renewed')
      failing = true
    }
  }
  const timer = setInterval(() => void renew(), claimLeaseMs / 3).unref()
  return {
    [Symbol.dispose]: () => {
      released = true
      clearInterval(timer)
    },
  }
}

function gatewayNames({ addresses, trust }: OAuthOptions): string[] {
  return [addresses.public, ...(trust.identity === undefined ? [] : [trust.identity.did])]
}

/**
 * The audiences of the tokens that the gateway exchanges for agents: itself, and its interfaces that call agents. Each interface has
 * checked that the token is for it.
 */
function exchangeableNames(options: OAuthOptions): string[] {
  const { public: url } = options.addresses
  return [...gatewayNames(options), `${url}/mcp`, `${url}/v1`]
}

async function remote(options: OAuthOptions): Promise<OAuth> {
  const { config, secrets, state, addresses, log } = options
  const { issuer = '', introspectionUrl, clientId = '' } = config.oauth
  const client = { clientId, clientSecret: secrets.oauthClientSecret ?? '' }
  const provider = new HttpIntrospector({
    url: introspectionUrl ?? (() => introspectionEndpoint(issuer)),
    ...client,
  })
  const keysUrl = clientMetadataUrl(config.oauth, () => log.warn(missingClientMetadataUrl))
  const secretKey = await state.keys.secretKey(await state.routing.cursorKey())
  const accounts = new Accounts(state.oauth)
  const gatewayTokens = new GatewayTokens(secretKey, clientId, provider)
  const accountTokens = new AccountTokens(secretKey, accounts, gatewayTokens)
  const clientKeys = keysUrl === undefined ? undefined : new HttpClientKeys({ url: keysUrl, ...client })
  const signingKeys = await signingKeysOf(options)
  const statements = new StatementSigner(signingKeys)
  const names = gatewayNames(options)
  const delegated = new DelegatedTokens({
    introspector: accountTokens,
    statements,
    secretKey,
    gatewayUrl: addresses.public,
    names,
    mayAct: (clientId, audience) => options.agents.mayAct(clientId, audience),
    isQuarantined: (clientId) => options.agents.isQuarantined(clientId),
  })
  return {
    issuer,
    introspector: delegated,
    clientKeys,
    provider: undefined,
    tokenExchange: new ExternalTokenExchange({
      issuer,
      introspector: delegated,
      client,
      tokenUrl: config.oauth.tokenUrl,
      statements,
      delegated,
      gatewayUrl: addresses.public,
      names: exchangeableNames(options),
      log,
    }),
    signingKeys,
    statementKeys: () => signingKeys.keySet(),
    delegated,
    console: externalConsole({ store: state.oauth, secretKey, tokens: accountTokens, accounts }),
    gatewayToken: async () => gatewayTokens.issue(),
    ping: () => provider.ping(),
    [Symbol.asyncDispose]: async () => {
      signingKeys[Symbol.dispose]()
      await provider[Symbol.asyncDispose]()
      await clientKeys?.[Symbol.asyncDispose]()
    },
  }
}

function signingKeysOf({ state, addresses, log }: OAuthOptions): Promise<StatementKeys> {
  return StatementKeys.start({
    files: state.keys.files,
    issuer: addresses.public,
    claims: state.claims,
    onFailure: (error) => log.warn({ err: error }, 'keys of statements could not be published'),
  })
}

async function introspectionEndpoint(issuer: string): Promise<string> {
  const { introspection_endpoint } = await discover(issuer)
  if (introspection_endpoint === undefined) throw new Error('the OAuth server has no introspection endpoint')
  return introspection_endpoint
}
