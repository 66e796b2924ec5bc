import { isDeepStrictEqual } from 'node:util'
import type { AllClientMetadata, Provider } from 'oidc-provider'
import { isLoopback } from './client-rules.ts'
import { newSecret } from './key-files.ts'
import type { OAuthStore } from './oauth-store.ts'

/** A client that the gateway makes for itself, its agents and its operator. */
export interface EnsureClient {
  clientId: string
  clientName: string
  /** Space-separated; the only way to `agent:admin`. */
  scope: string
  /** Base58 of a raw Ed25519 key. */
  publicKey?: string
  /** Default: the one it has, else a new one of 256 bits. */
  clientSecret?: string
  /** May introspect every access token: for servers that check tokens. */
  introspection?: boolean
  /** With these it may also ask a person (authorization code with PKCE, refresh token). */
  redirectUris?: string[]
}

export interface ClientCredentials {
  clientId: string
  clientSecret: string
}

const secretMinChars = 16

/** Makes and updates the gateway's own clients; a change that takes something away ends the client's tokens. */
export class Clients {
  readonly #provider: Provider
  readonly #store: OAuthStore
  /** One change at a time: two that ask for the same client get the same secret. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(provider: Provider, store: OAuthStore) {
    this.#provider = provider
    this.#store = store
  }

  /** @throws Error when the secret is too short; InvalidClientMetadata when scope, key or addresses are not valid. */
  ensure(asked: EnsureClient): Promise<ClientCredentials> {
    const done = this.#last.then(() => this.#ensure(asked))
    this.#last = done.catch(() => undefined)
    return done
  }

  async #ensure(asked: EnsureClient): Promise<ClientCredentials> {
    const found = await this.#store.find('Client', asked.clientId)
    // Somebody may have registered this id before: that client ends here, with all that it holds.
    const old = found?.['managed'] === true ? found : undefined
    const clientSecret = asked.clientSecret ?? (old?.['client_secret'] as string | undefined) ?? newSecret()
    if (clientSecret.length < secretMinChars) {
      throw new Error(`A client secret has at least ${secretMinChars} characters.`)
    }
    const metadata = { ...metadataOf(asked), client_secret: clientSecret }
    if (isDeepStrictEqual(old, metadata)) return { clientId: asked.clientId, clientSecret }
    await this.#provider.Client.validate(metadata as AllClientMetadata & { client_id: string })
    const record = { model: 'Client', id: asked.clientId, payload: metadata }
    if (found !== undefined) await this.#store.upsert(record)
    // Another gateway made it at the same time: its secret counts.
    else if (!(await this.#store.insert(record))) return this.#ensure(asked)
    if (found !== undefined && (old === undefined || takesAway(old, metadata))) {
      await this.#store.revokeByClientId(asked.clientId)
    }
    return { clientId: asked.clientId, clientSecret }
  }
}

function metadataOf(asked: EnsureClient): Record<string, unknown> {
  const redirectUris = asked.redirectUris ?? []
  const asksPerson = redirectUris.length > 0
  return {
    client_id: asked.clientId,
    client_name: asked.clientName,
    scope: asked.scope,
    managed: true,
    token_endpoint_auth_method: 'client_secret_basic',
    grant_types: ['client_credentials', ...(asksPerson ? ['authorization_code', 'refresh_token'] : [])],
    response_types: asksPerson ? ['code'] : [],
    redirect_uris: redirectUris,
    // A native client may come back on any port of this machine (RFC 8252, section 7.3).
    application_type: asksPerson && redirectUris.every(isLoopback) ? 'native' : 'web',
    ...(asked.publicKey === undefined ? {} : { public_key: asked.publicKey }),
    ...(asked.introspection === true ? { introspection: true } : {}),
  }
}

/** Tokens that are out keep their scope, so a smaller scope or another secret must end them. */
function takesAway(old: Record<string, unknown>, next: Record<string, unknown>): boolean {
  const left = new Set(String(next['scope']).split(' '))
  const lost = String(old['scope'])
    .split(' ')
    .some((scope) => !left.has(scope))
  return lost || old['client_secret'] !== next['client_secret']
}
