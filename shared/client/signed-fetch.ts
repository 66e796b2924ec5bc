import { createHash } from 'node:crypto'
import { RecentMap } from '@parley/kit/did/recent-map'
import { signRequest, unixNow } from '@parley/kit/did/signature'

/** The agent that signs: an `Identity`, or a DID with its private key. */
export interface Signer {
  did: string
  key: { sign(bytes: Uint8Array): Uint8Array }
}

/** Supplies the bearer token; `ClientToken` caches one and renews it. */
export interface TokenSource {
  get(): Promise<string>
  /** Called when the server has rejected a token, which the source must not return again. */
  forget(refused?: string): void
}

/** The options of `fetch` that a signed request supports. */
export interface SignedInit {
  method?: string
  headers?: Record<string, string>
  /** Sent and signed unchanged: a string or UTF-8 bytes. */
  body?: string | Uint8Array
  signal?: AbortSignal
}

/** Options of `signedFetch`. */
export interface SignedFetchOptions {
  /**
   * The server's address or DID, which is the token resource of its registry entry. The signature covers it, so that no other
   * server accepts the request. Default: none, for servers that support only the reference form.
   */
  audience?: string
}

/** A `fetch` that adds the token and the signature. */
export type SignedFetch = (url: string | URL, init?: SignedInit) => Promise<Response>

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/** A server accepts each signature once, so a body repeated within the same second needs a different timestamp. */
const aheadMaxSeconds = 60

/**
 * Returns a `fetch` that authenticates as an agent (spec/authentication.md#did-signatures): every request carries a bearer
 * token and a fresh DID signature of its body (of an empty string for a GET). After a 401, the request is sent again with a
 * new token. Redirects are returned but not followed, because the token and the signature are for this server.
 * @throws TypeError for a body that is not UTF-8, and whatever `fetch` and the token source throw
 *
 * ```ts
 * const identity = await agentIdentity('ada@example.com', 'agent.key.json')
 * const tokens = new ClientToken({ tokenUrl, clientId: identity.did, clientSecret, scope: 'agent:read agent:write' })
 * const client = new AgentClient({ url, fetch: signedFetch(identity, tokens, { audience: agentDid }) })
 * ```
 */
export function signedFetch(
  signer: Signer,
  tokens: TokenSource,
  { audience }: SignedFetchOptions = {},
): SignedFetch {
  const bound = audience === undefined ? {} : { audience }
  const timestampFor = freshTimestamps()
  const attempt = async (
    url: string | URL,
    init: SignedInit,
    body: string,
    token: string,
  ): Promise<Response> => {
    const headers = new Headers(init.headers)
    headers.set('authorization', `Bearer ${token}`)
    const signed = signRequest({ ...signer, ...bound, body, timestamp: timestampFor(body) })
    for (const [name, value] of Object.entries(signed)) headers.set(name, value)
    return fetch(url, {
      method: init.method ?? 'GET',
      headers,
      redirect: 'manual',
      ...(init.body !== undefined && { body }),
      ...(init.signal !== undefined && { signal: init.signal }),
    })
  }
  return async (url, init = {}) => {
    const { body = '' } = init
    const text = typeof body === 'string' ? body.toWellFormed() : utf8.decode(body)
    const token = await tokens.get()
    const response = await attempt(url, init, text, token)
    if (response.status !== 401) return response
    await response.body?.cancel()
    // A concurrent call may have renewed the token, so only the rejected token is dropped.
    tokens.forget(token)
    return attempt(url, init, text, await tokens.get())
  }
}

/** Returns the first second, from now to a minute ahead, that the same body has not been signed with. */
function freshTimestamps(): (body: string) => number {
  const last = new RecentMap<string, number>(1000)
  return (body) => {
    const name = createHash('sha256').update(body).digest('base64')
    const now = unixNow()
    const timestamp = Math.min(Math.max(now, (last.get(name) ?? 0) + 1), now + aheadMaxSeconds)
    last.set(name, timestamp)
    return timestamp
  }
}

export { ClientToken } from '@parley/kit/auth/client-token'
export { agentIdentity } from '@parley/kit/did/identity'
export type * from '@parley/wire/codecs/parley/shapes'
export { AgentClient, ConnectionError, RpcError } from './client.ts'
export { type Payer, type PaymentOption, type PaymentRequirements, payingFetch } from './paying-fetch.ts'
