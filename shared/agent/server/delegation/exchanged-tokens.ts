import { hash } from 'node:crypto'
import { CircuitBreaker } from '@parley/kit/auth/circuit-breaker'
import { ClientToken } from '@parley/kit/auth/client-token'
import {
  isStatement,
  statementExchangePath,
  statementIssuer,
  statementTokenType,
} from '@parley/kit/auth/statement'
import { RecentMap } from '@parley/kit/did/recent-map'
import { boundedText } from '@parley/kit/net/bounded-text'
import { request } from '@parley/kit/net/http-client'
import { jsonOf } from '@parley/wire/model/json-text'
import { z } from 'zod'

const accessToken = 'urn:ietf:params:oauth:token-type:access_token'
const grantType = 'urn:ietf:params:oauth:grant-type:token-exchange'

const tokenResponse = z.object({
  access_token: z.string().min(1).max(12_288),
  expires_in: z.number().nonnegative().default(60),
})
const errorResponse = z.object({ error: z.string(), error_description: z.string().optional() })

export interface ExchangeClient {
  /** The token endpoint, or a function that performs discovery. */
  tokenUrl: string | (() => Promise<string>)
  clientId: string
  clientSecret: string
  /** The name of the server that accepts the new tokens: the gateway. A function is called until it succeeds. */
  resource: string | (() => Promise<string>)
  /** The address at which this agent reaches the gateway, which exchanges its statements. */
  gatewayUrl: string
  /** The agent's own tokens, with which it authenticates at the gateway. Default: requested with client credentials. */
  ownTokens?: OwnTokens
}

interface OwnTokens {
  get(): Promise<string>
  forget(rejected: string): void
}

interface Answer {
  status: number
  json: unknown
}

/** The OAuth server does not exchange the token. `message` is its description of the reason. */
export class ExchangeRefusedError extends Error {
  override readonly name = 'ExchangeRefusedError'
}

const notOffered = 'the gateway does not exchange its statements: update the gateway'
const timeoutMs = 5000
const cachedMax = 1000

/**
 * Exchanges the tokens that arrive with tasks for tokens with which this agent calls the gateway (RFC 8693). The gateway
 * exchanges its statements, and the OAuth server all other tokens. Caches each token for four fifths of its lifetime.
 * Concurrent callers share one request.
 */
export class ExchangedTokens {
  readonly #client: ExchangeClient
  readonly #cached = new RecentMap<string, { token: string; until: number }>(cachedMax)
  readonly #pending = new Map<string, Promise<string>>()
  readonly #breaker = new CircuitBreaker()
  readonly #gatewayBreaker = new CircuitBreaker()
  readonly #ownTokens: OwnTokens
  /** The token endpoint and the gateway's name, once they are known. */
  #tokenUrl: string | undefined
  #resource: string | undefined

  constructor(client: ExchangeClient) {
    this.#client = client
    const { tokenUrl, clientId, clientSecret } = client
    this.#ownTokens =
      client.ownTokens ??
      new ClientToken({ tokenUrl, clientId, clientSecret, scope: 'agent:read agent:write' })
  }

  /** @throws ExchangeRefusedError; Error if the OAuth server does not respond */
  get(subject: string): Promise<string> {
    const key = hash('sha256', subject)
    const cached = this.#cached.get(key)
    if (cached !== undefined && Date.now() < cached.until) return Promise.resolve(cached.token)
    const pending = this.#pending.get(key)
    if (pending !== undefined) return pending
    const exchanging = this.#exchange(subject, key).finally(() => this.#pending.delete(key))
    this.#pending.set(key, exchanging)
    return exchanging
  }

  /** Discards the token that a server has rejected, so that the next `get` requests a new one. */
  forget(subject: string): void {
    this.#cached.delete(hash('sha256', subject))
  }

  async #exchange(subject: string, key: string): Promise<string> {
    const { status, json } = isStatement(subject)
      ? await this.#gatewayBreaker.run(() => this.#exchangeStatement(subject))
      : await this.#breaker.run(() => this.#requestToken(subject))
    if (status !== 200) throw refusalOf(status, json)
    const { access_token: token, expires_in: seconds } = tokenResponse.parse(json)
    this.#cached.set(key, { token, until: Date.now() + seconds * 800 })
    return token
  }

  /** The gateway named itself in the statement, which may be another address than the one that this agent uses. */
  async #exchangeStatement(statement: string): Promise<Answer> {
    const form = {
      grant_type: grantType,
      subject_token: statement,
      subject_token_type: statementTokenType,
      resource: statementIssuer(statement) ?? '',
    }
    const url = this.#client.gatewayUrl.replace(/\/+$/, '') + statementExchangePath
    const send = async () => {
      const own = await this.#ownTokens.get()
      const answer = await post(url, form, { authorization: `Bearer ${own}` })
      if (answer.status === 401) this.#ownTokens.forget(own)
      return answer
    }
    let answer = await send()
    // The agent's own token was revoked or has expired early.
    if (answer.status === 401) answer = await send()
    if (answer.status === 404) throw new ExchangeRefusedError(notOffered)
    return answer
  }

  async #requestToken(subject: string): Promise<Answer> {
    const { tokenUrl, clientId, clientSecret, resource } = this.#client
    this.#tokenUrl ??= typeof tokenUrl === 'string' ? tokenUrl : await tokenUrl()
    this.#resource ??= typeof resource === 'string' ? resource : await resource()
    const form = {
      grant_type: grantType,
      subject_token: subject,
      subject_token_type: accessToken,
      resource: this.#resource,
      client_id: clientId,
      client_secret: clientSecret,
    }
    return post(this.#tokenUrl, form)
  }
}

/** @throws Error for a failure of the server */
async function post(url: string, form: Record<string, string>, headers: object = {}): Promise<Answer> {
  const response = await request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json', ...headers },
    body: new URLSearchParams(form).toString(),
    signal: AbortSignal.timeout(timeoutMs),
  })
  const text = await boundedText(response.body)
  if (response.statusCode >= 500) throw new Error(`the token endpoint returned ${response.statusCode}`)
  return { status: response.statusCode, json: jsonOf(text) }
}

function refusalOf(status: number, json: unknown): Error {
  const answer = errorResponse.safeParse(json).data
  if (answer === undefined || status === 429) return new Error(`the token endpoint returned ${status}`)
  return new ExchangeRefusedError((answer.error_description ?? answer.error).slice(0, 500))
}
