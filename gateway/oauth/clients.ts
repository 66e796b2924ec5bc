import { isDeepStrictEqual } from 'node:util'
import { KeyedMutex } from '@parley/kit/process/keyed-mutex'
import type { AllClientMetadata, Provider } from 'oidc-provider'
import { isLoopback } from './client-rules.ts'
import { newSecret } from './key-files.ts'
import type { OAuthStore } from './oauth-store.ts'

/** A client that the gateway creates for itself, its agents or its operator. */
export interface ManagedClient {
  clientId: string
  clientName: string
  /** Scopes separated by spaces. Only a managed client can have `agent:admin`. */
  scope: string
  /** A raw Ed25519 key in base58. */
  publicKey?: string
  /** Defaults to the existing secret or, if there is none, to a new one of 256 bits. */
  clientSecret?: string
  /** Whether the client may introspect all access tokens. */
  introspection?: boolean
  /** Enables the authorization code grant with PKCE and refresh tokens. */
  redirectUris?: string[]
}

export interface ClientCredentials {
  clientId: string
  clientSecret: string
}

const secretMinChars = 16

/** Creates and updates managed clients. Revokes the client's tokens if a change reduces its access. */
export class Clients {
  readonly #provider: Provider
  readonly #store: OAuthStore
  /** Serializes changes to a client so that concurrent calls return the same secret. */
  readonly #mutex = new KeyedMutex()

  constructor(provider: Provider, store: OAuthStore) {
    this.#provider = provider
    this.#store = store
  }

  /** @throws Error if the secret is too short, InvalidClientMetadata for an invalid scope, key or address */
  ensure(client: ManagedClient): Promise<ClientCredentials> {
    return this.#mutex.run([client.clientId], () => this.#ensure(client))
  }

  async #ensure(client: ManagedClient): Promise<ClientCredentials> {
    const found = await this.#store.find('Client', client.clientId)
    // An unmanaged client with this id is replaced, and its tokens are revoked.
    const old = found?.['managed'] === true ? found : undefined
    const oldSecret = old?.['client_secret']
    const clientSecret = client.clientSecret ?? (typeof oldSecret === 'string' ? oldSecret : newSecret())
    if (clientSecret.length < secretMinChars) {
      throw new Error(`A client secret has at least ${secretMinChars} characters.`)
    }
    const metadata = { ...metadataOf(client), client_secret: clientSecret }
    if (isDeepStrictEqual(old, metadata)) return { clientId: client.clientId, clientSecret }
    await this.#provider.Client.validate(metadata)
    const record = { model: 'Client', id: client.clientId, payload: metadata }
    if (found !== undefined) await this.#store.upsert(record)
    // Another gateway created the client concurrently, so its secret is used.
    else if (!(await this.#store.insert(record))) return this.#ensure(client)
    if (found !== undefined && (old === undefined || reducesAccess(old, metadata))) {
      await this.#store.revokeByClientId(client.clientId)
    }
    return { clientId: client.clientId, clientSecret }
  }
}

function metadataOf(client: ManagedClient): AllClientMetadata & { client_id: string } {
  const redirectUris = client.redirectUris ?? []
  const usesCodeGrant = redirectUris.length > 0
  return {
    client_id: client.clientId,
    client_name: client.clientName,
    scope: client.scope,
    managed: true,
    token_endpoint_auth_method: 'client_secret_basic',
    grant_types: ['client_credentials', ...(usesCodeGrant ? ['authorization_code', 'refresh_token'] : [])],
    response_types: usesCodeGrant ? ['code'] : [],
    redirect_uris: redirectUris,
    // The port in a native client's loopback redirect may vary (RFC 8252, section 7.3).
    application_type: usesCodeGrant && redirectUris.every(isLoopback) ? 'native' : 'web',
    ...(client.publicKey === undefined ? {} : { public_key: client.publicKey }),
    ...(client.introspection === true ? { introspection: true } : {}),
  }
}

/** Issued tokens keep their scope, so they must be revoked when the client loses a scope or its secret changes. */
function reducesAccess(old: Record<string, unknown>, next: Record<string, unknown>): boolean {
  const left = new Set(String(next['scope']).split(' '))
  const lost = String(old['scope'])
    .split(' ')
    .some((scope) => !left.has(scope))
  return lost || old['client_secret'] !== next['client_secret']
}
