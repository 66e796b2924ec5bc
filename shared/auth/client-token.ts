import { request } from 'undici'
import { z } from 'zod'
import { boundedText } from './bounded-text.ts'

const answer = z.object({ access_token: z.string().min(1), expires_in: z.number().positive().default(300) })

export interface TokenClient {
  /** The token endpoint; a function is asked with each request (discovery). */
  tokenUrl: string | (() => Promise<string>)
  clientId: string
  clientSecret: string
  scope: string
}

/** Our own access token by client credentials (RFC 6749, section 4.4): kept while it lasts, one request at a time. */
export class ClientToken {
  readonly #client: TokenClient
  #token: { text: string; renewAt: number } | undefined
  #underWay: Promise<string> | undefined

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

  /** The server refused it: the next `get` asks for a new one. */
  forget(): void {
    this.#token = undefined
  }

  async #fetch(): Promise<string> {
    const { tokenUrl, clientId, clientSecret, scope } = this.#client
    const address = typeof tokenUrl === 'string' ? tokenUrl : await tokenUrl()
    const credentials = { client_id: clientId, client_secret: clientSecret }
    const response = await request(address, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
      body: new URLSearchParams({ grant_type: 'client_credentials', scope, ...credentials }).toString(),
      headersTimeout: 5000,
      bodyTimeout: 5000,
    })
    const text = await boundedText(response.body)
    if (response.statusCode !== 200) throw new Error(`the token endpoint answered ${response.statusCode}`)
    const { access_token, expires_in } = answer.parse(JSON.parse(text))
    // Renewed after four fifths of its life.
    this.#token = { text: access_token, renewAt: Date.now() + expires_in * 800 }
    return access_token
  }
}
