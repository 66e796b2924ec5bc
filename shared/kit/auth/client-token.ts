import { request } from 'undici'
import { z } from 'zod'
import { boundedText } from '../net/bounded-text.ts'
import { CircuitBreaker } from './circuit-breaker.ts'

const answer = z.object({
  access_token: z.string().min(1),
  expires_in: z.number().nonnegative().default(300),
})

export interface TokenClient {
  /** The token endpoint; a function is asked with each request (discovery). */
  tokenUrl: string | (() => Promise<string>)
  clientId: string
  clientSecret: string
  scope: string
  /**
   * Address or DID of the one server that the token shall be good for (RFC 8707): another that gets to see it cannot use
   * it. Sent as `resource` and as `audience`, which is how Ory Hydra calls it (the client must be allowed it there).
   */
  resource?: string
}

const limitMs = 5000

/**
 * Our own access token by client credentials (RFC 6749, section 4.4): kept while it lasts, one request at a time.
 * Requests to an OAuth server that cannot be reached are suspended by a circuit breaker.
 */
export class ClientToken {
  readonly #client: TokenClient
  #token: { text: string; renewAt: number } | undefined
  #underWay: Promise<string> | undefined
  readonly #breaker = new CircuitBreaker()

  constructor(client: TokenClient) {
    this.#client = client
  }

  /** @throws Error when the OAuth server does not give one; its text holds no secret */
  get(): Promise<string> {
    if (this.#token !== undefined && Date.now() < this.#token.renewAt)
      return Promise.resolve(this.#token.text)
    this.#underWay ??= this.#fetch().finally(() => {
      this.#underWay = undefined
    })
    return this.#underWay
  }

  /** The server refused it: the next `get` asks for a new one. @param refused nothing is forgotten when another is kept by now */
  forget(refused?: string): void {
    if (refused === undefined || refused === this.#token?.text) this.#token = undefined
  }

  async #fetch(): Promise<string> {
    const { status, text } = await this.#breaker.run(() => this.#ask())
    if (status !== 200) throw new Error(`the token endpoint answered ${status}`)
    const { access_token, expires_in } = answer.parse(JSON.parse(text))
    // Renewed after four fifths of its life.
    this.#token = { text: access_token, renewAt: Date.now() + expires_in * 800 }
    return access_token
  }

  async #ask(): Promise<{ status: number; text: string }> {
    const { tokenUrl } = this.#client
    const response = await request(typeof tokenUrl === 'string' ? tokenUrl : await tokenUrl(), {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: formOf(this.#client),
      signal: AbortSignal.timeout(limitMs),
    })
    const text = await boundedText(response.body)
    if (response.statusCode >= 500) throw new Error(`the token endpoint answered ${response.statusCode}`)
    return { status: response.statusCode, text }
  }
}

function formOf({ clientId, clientSecret, scope, resource }: TokenClient): string {
  const form = { grant_type: 'client_credentials', scope, client_id: clientId, client_secret: clientSecret }
  const bound = resource === undefined ? {} : { resource, audience: resource }
  return new URLSearchParams({ ...form, ...bound }).toString()
}
