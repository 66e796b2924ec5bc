import type { IncomingMessage } from 'node:http'
import { networkOf } from '@parley/kit/http/request-limits'
import { errors, type KoaContextWithOIDC, type Provider } from 'oidc-provider'
import { isPrintableName, nameMaxChars } from '../client-rules.ts'
import type { OAuthStore } from '../oauth-store.ts'
import { addressOf } from '../request-address.ts'
import { type BucketSize, StoredBuckets } from '../stored-buckets.ts'
import { unverifiedClient } from './unverified-client.ts'

/**
 * Registrations without an initial access token. Unused clients are removed after a day, so that these limits also bound the
 * number of stored clients: at most about 3,200.
 */
const limits = {
  address: { burst: 10, refillSeconds: 360 },
  everybody: { burst: 300, refillSeconds: 30 },
} as const satisfies Record<string, BucketSize>

const openRequests = new WeakSet<IncomingMessage>()

/** Whether the client registers itself without an initial access token. */
export function isOpenRegistration({ req }: Pick<KoaContextWithOIDC, 'req'>): boolean {
  return openRequests.has(req)
}

/**
 * Lets public clients register without an initial access token. They can only request a person's approval, and get neither the
 * operator's scope nor a token with which they could change their registration.
 */
export class OpenRegistration {
  readonly #buckets: StoredBuckets

  constructor(store: Pick<OAuthStore, 'find' | 'insert' | 'exchange'>) {
    this.#buckets = new StoredBuckets(store, 'OpenRegistration')
  }

  /** Gives registrations without a token the initial access token, which oidc-provider requires. */
  admit(provider: Provider, initialAccessToken: string): void {
    provider.use((ctx, next) => {
      const { req } = ctx
      if (ctx.method === 'POST' && ctx.path === '/register' && req.headers.authorization === undefined) {
        openRequests.add(req)
        req.headers.authorization = `Bearer ${initialAccessToken}`
      }
      return next()
    })
  }

  /**
   * Counts the registration and reduces its metadata to those that this server supports.
   * @throws InvalidClientMetadata, InvalidRedirectUri, OIDCProviderError 429
   */
  async prepare(ctx: KoaContextWithOIDC): Promise<void> {
    const body: Record<string, unknown> = ctx.oidc.body ?? {}
    await this.#count(ctx)
    const { client_id: id, client_name: name } = body
    if (id !== undefined)
      throw new errors.InvalidClientMetadata(
        'client_id can be chosen only by registrations with an initial access token',
      )
    if (name !== undefined && !isPrintableName(name))
      throw new errors.InvalidClientMetadata(
        `client_name must be at most ${nameMaxChars} printable characters`,
      )
    const metadata = unverifiedClient(body, 'open')
    if (metadata.redirect_uris.length === 0)
      throw new errors.InvalidRedirectUri(
        'redirect_uris must contain an https address, or an http address of a loopback interface',
      )
    for (const field of Object.keys(body)) delete body[field]
    Object.assign(body, metadata, name !== undefined && { client_name: name })
  }

  async #count(ctx: KoaContextWithOIDC): Promise<void> {
    for (const [limit, key] of [
      ['address', networkOf(addressOf(ctx.req) ?? '')],
      ['everybody', ''],
    ] as const) {
      const { isTaken, waitMs } = await this.#buckets.take(limit, key, limits[limit])
      if (isTaken) continue
      ctx.set('retry-after', String(Math.ceil(waitMs / 1000)))
      const error = new errors.OIDCProviderError(429, 'temporarily_unavailable')
      error.error_description = 'too many registrations: try again later, or use a registered client'
      throw error
    }
  }
}
