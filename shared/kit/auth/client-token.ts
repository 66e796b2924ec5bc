import { z } from 'zod'
import { boundedText } from '../net/bounded-text.ts'
import { request } from '../net/http-client.ts'
import { CircuitBreaker } from './circuit-breaker.ts'

const tokenResponse = z.object({
  access_token: z.string().min(1),
  expires_in: z.number().nonnegative().default(300),
})

export interface TokenClient {
  /** The token endpoint, or a function that performs discovery and is called for each request. */
  tokenUrl: string | (() => Promise<string>)
  clientId: string
  clientSecret: string
  scope: string
  /**
   * Address or DID of the only server that may accept the token (RFC 8707). It is sent as `resource`, and as
   * `audience` for Ory Hydra, where the client must be allowed to use the audience.
   */
  resource?: string
}

const timeoutMs = 5000

/**
 * Obtains an access token with client credentials (RFC 6749, section 4.4), caches it, and renews it before it
 * expires. Concurrent callers share one request. A circuit breaker suspends requests while the OAuth server is
 * unreachable.
 */
export class ClientToken {
  readonly #client: TokenClient
  #token: { text: string; renewAt: number } | undefined
  #pending: Promise<string> | undefined
  readonly #breaker = new CircuitBreaker()

  constructor(client: TokenClient) {
    this.#client = client
  }

  /** @throws Error if no token can be obtained; the message contains no secret */
  get(): Promise<string> {
    if (this.#token !== undefined && Date.now() < this.#token.renewAt)
      return Promise.resolve(this.#token.text)
    this.#pending ??= this.#fetch().finally(() => {
      this.#pending = undefined
    })
    return this.#pending
  }

  /**
   * Discards the cached token, so that the next `get` requests a new one.
   * @param rejected the token that a server has rejected; a newer one is kept
   */
  forget(rejected?: string): void {
    if (rejected === undefined || rejected === this.#token?.text) this.#token = undefined
  }

  async #fetch(): Promise<string> {
    const { status, text } = await this.#breaker.run(() => this.#request())
    if (status !== 200) throw new Error(`the token endpoint returned ${status}`)
    const { access_token, expires_in } = tokenResponse.parse(JSON.parse(text))
    // The token is renewed after four fifths of its lifetime.
    this.#token = { text: access_token, renewAt: Date.now() + expires_in * 800 }
    return access_token
  }

  async #request(): Promise<{ status: number; text: string }> {
    const { tokenUrl } = this.#client
    const response = await request(typeof tokenUrl === 'string' ? tokenUrl : await tokenUrl(), {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: formOf(this.#client),
      signal: AbortSignal.timeout(timeoutMs),
    })
    const text = await boundedText(response.body)
    if (response.statusCode >= 500) throw new Error(`the token endpoint returned ${response.statusCode}`)
    return { status: response.statusCode, text }
  }
}

function formOf({ clientId, clientSecret, scope, resource }: TokenClient): string {
  const form = new URLSearchParams({ grant_type: 'client_credentials', scope })
  form.set('client_id', clientId)
  form.set('client_secret', clientSecret)
  if (resource !== undefined) for (const name of ['resource', 'audience']) form.set(name, resource)
  return form.toString()
}
