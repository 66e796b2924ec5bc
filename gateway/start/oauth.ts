import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { type ClientKeys, HttpClientKeys, readPublicKey } from '@parley/kit/auth/client-keys'
import { clientMetadataUrl, nobodySaysWhere } from '@parley/kit/auth/client-metadata-url'
import { discover } from '@parley/kit/auth/discovery'
import { HttpIntrospector, type Introspector } from '@parley/kit/auth/introspection'
import type { Log } from '@parley/kit/process/log'
import { ConfigError } from '@parley/kit/process/settings'
import type { GatewayConfig, GatewaySecrets } from '../config.ts'
import { createIdentityProvider, type IdentityProvider } from '../oauth/identity-provider.ts'
import { secretsPrint } from '../oauth/key-files.ts'
import type { Addresses } from './addresses.ts'
import { provideDevClient, provideOperatorClient } from './dev-client.ts'
import type { GatewayState } from './gateway-state.ts'

/** Who knows the tokens: the embedded OAuth server, or the one of OAUTH_ISSUER. */
export interface OAuth extends AsyncDisposable {
  issuer: string
  introspector: Introspector
  /** Undefined where nobody can be asked. */
  clientKeys: ClientKeys | undefined
  ping(): Promise<void>
  provider: IdentityProvider | undefined
}

export interface OAuthOptions {
  config: GatewayConfig
  secrets: GatewaySecrets
  state: GatewayState
  addresses: Addresses
  log: Log
  /** Agents that may check tokens. */
  isTrusted: (clientId: string) => boolean
  /** The keys that the document of a did:web lists. */
  keysOf: (did: string) => Promise<readonly string[]>
}

export async function startOAuth(options: OAuthOptions): Promise<OAuth> {
  const { config, state, addresses, log } = options
  if (!config.embeddedOAuth) return remote(options)
  const { dataDir, production } = config
  const keysDir = path.join(dataDir, 'oauth')
  const agreeing =
    state.claims && (await agree(state.claims, `${addresses.public} ${await secretsPrint(keysDir)}`, log))
  const provider = await createIdentityProvider({
    issuer: `${addresses.public}/oauth2`,
    store: state.oauth,
    keysDir,
    log,
    production,
    isTrusted: options.isTrusted,
    keysOf: options.keysOf,
  })
  await provideDevClient(provider, { dataDir, production, log })
  await provideOperatorClient(provider, dataDir)
  return {
    issuer: provider.issuer,
    introspector: provider,
    clientKeys: {
      publicKey: async (clientId) =>
        readPublicKey((await provider.clientMetadata(clientId))?.publicKey ?? ''),
    },
    provider,
    // It lives in this process and in this database.
    ping: () => state.ping(),
    [Symbol.asyncDispose]: async () => {
      agreeing?.[Symbol.dispose]()
      await provider[Symbol.asyncDispose]()
    },
  }
}

/** As long as one of them runs, no gateway may join that is another OAuth server. */
const agreedForMs = 15_000

/** @throws ConfigError when gateways run on this database that have another address or other secrets */
async function agree(
  claims: NonNullable<GatewayState['claims']>,
  print: string,
  log: Log,
): Promise<Disposable> {
  const name = 'oauth-server'
  const hold = () => claims.hold(name, print, agreedForMs)
  const until = Date.now() + agreedForMs + 1000
  let held = await hold()
  // One that has ended holds it for a while.
  for (; !held && Date.now() < until; held = await hold()) await wait(500)
  if (!held) {
    throw new ConfigError([
      'Another gateway on this database has another PUBLIC_URL or other files in DATA_DIR/oauth: give all gateways the same of both, or stop the other one.',
    ])
  }
  let [failing, over] = [false, false]
  const renew = async () => {
    try {
      if (!(await hold())) log.error('another gateway on this database is another OAuth server')
      failing = false
    } catch (error) {
      if (!failing && !over) log.warn({ err: error }, 'other gateways could not be told of this one')
      failing = true
    }
  }
  const timer = setInterval(() => void renew(), agreedForMs / 3).unref()
  return {
    [Symbol.dispose]: () => {
      over = true
      clearInterval(timer)
    },
  }
}

function remote({ config, secrets, log }: OAuthOptions): OAuth {
  const { issuer = '', introspectionUrl, clientId = '' } = config.oauth
  const client = { clientId, clientSecret: secrets.oauthClientSecret ?? '' }
  const introspector = new HttpIntrospector({
    url: introspectionUrl ?? (() => introspectionEndpoint(issuer)),
    ...client,
  })
  const keysUrl = clientMetadataUrl(config.oauth, () => log.warn(nobodySaysWhere))
  const clientKeys = keysUrl === undefined ? undefined : new HttpClientKeys({ url: keysUrl, ...client })
  return {
    issuer,
    introspector,
    clientKeys,
    provider: undefined,
    ping: () => introspector.ping(),
    [Symbol.asyncDispose]: async () => {
      await introspector[Symbol.asyncDispose]()
      await clientKeys?.[Symbol.asyncDispose]()
    },
  }
}

async function introspectionEndpoint(issuer: string): Promise<string> {
  const { introspection_endpoint } = await discover(issuer)
  if (introspection_endpoint === undefined) throw new Error('the OAuth server has no introspection endpoint')
  return introspection_endpoint
}
