import type { IncomingHttpHeaders } from 'node:http'
import { RecentMap } from '@parley/kit/did/recent-map'
import { networkOf } from '@parley/kit/http/request-limits'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'
import type { Configuration, KoaContextWithOIDC } from 'oidc-provider'
import { readJwks } from '../client-assertions.ts'
import { isPrintableName } from '../client-rules.ts'
import type { OAuthStore } from '../oauth-store.ts'
import { addressOf } from '../request-address.ts'
import { type BucketSize, StoredBuckets } from '../stored-buckets.ts'
import { findSettings, isDisabled } from './client-settings.ts'
import { unverifiedClient } from './unverified-client.ts'

/** A document at a client's address. */
export interface FetchedDocument {
  status: number
  headers: IncomingHttpHeaders
  text: string
}

/** Reads an address from an untrusted source: private addresses are refused, and time, size and redirects are limited. */
export type FetchDocument = (url: string, signal: AbortSignal | undefined) => Promise<FetchedDocument>

type Feature = NonNullable<NonNullable<Configuration['features']>['clientIdMetadataDocument']>

/** Requests for documents that are not cached. */
const limits = {
  address: { burst: 20, refillSeconds: 30 },
  host: { burst: 10, refillSeconds: 30 },
  everybody: { burst: 200, refillSeconds: 1 },
} as const satisfies Record<string, BucketSize>
/** A document that was refused is not read again within this time. */
const repeatMs = 5000
const recentMax = 1000
/** Operators manage clients by ids of at most this length. */
const idMaxChars = 512

/**
 * Clients with the https address of their metadata as id (OAuth Client ID Metadata Document). oidc-provider checks that the
 * document states its own address as `client_id`, and caches it as its HTTP headers say, within bounds.
 */
export class MetadataDocuments {
  readonly #fetch: FetchDocument
  readonly #store: Pick<OAuthStore, 'find'>
  readonly #buckets: StoredBuckets
  /** Ids of the clients with a document that may be read now. oidc-provider reads no other address. */
  readonly #allowed = new RecentMap<string, true>(recentMax)
  /** When a document was read, in milliseconds since 1970. A valid one is then in oidc-provider's cache. */
  readonly #readAt = new RecentMap<string, number>(recentMax)

  constructor(store: Pick<OAuthStore, 'find' | 'insert' | 'exchange'>, fetch: FetchDocument) {
    this.#fetch = fetch
    this.#store = store
    this.#buckets = new StoredBuckets(store, 'DocumentFetch')
  }

  readonly feature: Feature = {
    enabled: true,
    ack: 'draft-02',
    cacheDuration: { min: 300, max: 86_400 },
    allowFetch: (ctx, clientId) => this.#allow(ctx, clientId),
    allowClient: async (_ctx, { clientId }) => {
      const settings = await findSettings(this.#store, clientId)
      return settings === undefined || !isDisabled(settings)
    },
  }

  /** The outgoing requests of oidc-provider. */
  readonly fetch: NonNullable<Configuration['fetch']> = async (input, init) => {
    const url = input instanceof Request ? input.url : String(input)
    if (this.#allowed.get(url) === undefined)
      throw new Error('outgoing requests other than for client metadata are disabled')
    this.#allowed.delete(url)
    const fetched = this.#fetch(url, init?.signal ?? undefined)
    const { status, headers, text } = await fetched.finally(() => this.#readAt.set(url, Date.now()))
    const given = jsonOf(text)
    if (status !== 200 || !isObject(given))
      return new Response(null, { status: status === 200 ? 502 : status })
    // The headers on which caching depends.
    const { 'cache-control': cacheControl = '', expires = '' } = headers
    return Response.json(supported(given), { headers: { 'cache-control': cacheControl, expires } })
  }

  /** `ctx` is undefined on the approval page, which an earlier authorization request has led to. */
  async #allow(ctx: KoaContextWithOIDC | undefined, clientId: string): Promise<boolean> {
    if (clientId.length > idMaxChars) return false
    // oidc-provider looks for a client that it has refused again to find the redirect URI.
    if (Date.now() - (this.#readAt.get(clientId) ?? 0) < repeatMs) return false
    const buckets: [keyof typeof limits, string][] = [
      ...(ctx === undefined
        ? []
        : [['address', networkOf(addressOf(ctx.req) ?? '')] satisfies ['address', string]]),
      ['host', new URL(clientId).hostname],
      ['everybody', ''],
    ]
    for (const [limit, key] of buckets) {
      const { isTaken } = await this.#buckets.take(limit, key, limits[limit])
      if (!isTaken) return false
    }
    this.#allowed.set(clientId, true)
    return true
  }
}

/** Returns the metadata of the document that this server supports. oidc-provider refuses a document without redirect URIs. */
function supported(given: Record<string, unknown>): Record<string, unknown> {
  const { client_id: id, client_name: name, token_endpoint_auth_method: method = 'none' } = given
  const { jwks, client_secret: secret } = given
  return {
    ...unverifiedClient(given, 'document'),
    client_id: id,
    ...(isPrintableName(name) && { client_name: name }),
    token_endpoint_auth_method: method,
    ...(method === 'private_key_jwt' && { jwks: readJwks(jwks) }),
    // oidc-provider refuses a document with a secret.
    ...(secret !== undefined && { client_secret: secret }),
  }
}
