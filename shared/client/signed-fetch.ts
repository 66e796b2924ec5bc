import { createHash } from 'node:crypto'
import { RecentMap } from '@parley/kit/did/recent-map'
import { signRequest, unixNow } from '@parley/kit/did/signature'

/** Who signs: an `Identity`, or a DID and what signs with its key. */
export interface Signer {
  did: string
  key: { sign(bytes: Uint8Array): Uint8Array }
}

/** Where the bearer token comes from; a `ClientToken` keeps one fresh. */
export interface TokenSource {
  get(): Promise<string>
  /** The server refused it: this one, if it is the one that is kept. */
  forget(refused?: string): void
}

export interface SignedInit {
  method?: string
  headers?: Record<string, string>
  /** Sent and signed as it is; a text, or the UTF-8 bytes of one. */
  body?: string | Uint8Array
  signal?: AbortSignal
}

export interface SignedFetchOptions {
  /**
   * Address or DID of the server that the requests are for (`token_resource` of its registry entry). It is signed too, so
   * that no other server accepts the request. Default: none, for servers that know only the reference form.
   */
  audience?: string
}

export type SignedFetch = (url: string | URL, init?: SignedInit) => Promise<Response>

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/** Servers that require signatures take each once: within a second, the same body needs another timestamp. */
const aheadMaxSeconds = 60

/**
 * `fetch` in the name of an agent (spec/authentication.md#did-signatures): every request carries a bearer token and the DID
 * signature of its body (a GET that of the empty text), made anew each time. A 401 is tried once more with a new token.
 * Redirects are given back, never followed: the token and the signature are for this server.
 * @throws TypeError for a body that is not UTF-8, and what `fetch` and the token source throw
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
    // Another call may have a new one already: that is not the one that was refused.
    tokens.forget(token)
    return attempt(url, init, text, await tokens.get())
  }
}

/** The present second, or the first after it that the same body was not signed with; never far ahead of the clock. */
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
export { type Payer, type PaymentAsked, type PaymentOption, payingFetch } from './paying-fetch.ts'
