import path from 'node:path'
import { discover } from '../../shared/auth/discovery.ts'
import { HttpIntrospector, type Introspector } from '../../shared/auth/introspection.ts'
import type { Log } from '../../shared/process/log.ts'
import type { SqliteDatabase } from '../../shared/store/sqlite-database.ts'
import type { GatewayConfig, GatewaySecrets } from '../config.ts'
import { createIdentityProvider, type IdentityProvider } from '../identity-provider/identity-provider.ts'
import { SqliteOAuthStore } from '../identity-provider/oauth-sqlite.ts'
import type { Addresses } from './addresses.ts'
import { provideDevClient } from './dev-client.ts'

/** Who knows the tokens: the embedded OAuth server, or the one of OAUTH_ISSUER. */
export interface OAuth extends AsyncDisposable {
  issuer: string
  introspector: Introspector
  ping(): Promise<void>
  provider: IdentityProvider | undefined
}

export interface OAuthOptions {
  config: GatewayConfig
  secrets: GatewaySecrets
  database: SqliteDatabase
  addresses: Addresses
  log: Log
}

export async function startOAuth(options: OAuthOptions): Promise<OAuth> {
  const { config, database, addresses, log } = options
  if (!config.embeddedOAuth) return remote(options)
  const { dataDir, production } = config
  const provider = await createIdentityProvider({
    issuer: `${addresses.public}/oauth2`,
    store: new SqliteOAuthStore(database),
    keysDir: path.join(dataDir, 'oauth'),
    log,
    production,
  })
  await provideDevClient(provider, { dataDir, production })
  return {
    issuer: provider.issuer,
    introspector: provider,
    provider,
    // It lives in this process and in this database.
    ping: () => database.ping(),
    [Symbol.asyncDispose]: () => provider[Symbol.asyncDispose](),
  }
}

function remote({ config, secrets }: OAuthOptions): OAuth {
  const { issuer = '', introspectionUrl, clientId = '' } = config.oauth
  const introspector = new HttpIntrospector({
    url: introspectionUrl ?? (() => introspectionEndpoint(issuer)),
    clientId,
    clientSecret: secrets.oauthClientSecret ?? '',
  })
  return {
    issuer,
    introspector,
    provider: undefined,
    ping: () => introspector.ping(),
    [Symbol.asyncDispose]: () => introspector[Symbol.asyncDispose](),
  }
}

async function introspectionEndpoint(issuer: string): Promise<string> {
  const { introspection_endpoint } = await discover(issuer)
  if (introspection_endpoint === undefined) throw new Error('the OAuth server has no introspection endpoint')
  return introspection_endpoint
}
