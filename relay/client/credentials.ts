import type { AgentCredential } from '@parley/kit/auth/agent-credential'
import type { AllowedHosts } from '@parley/kit/net/allowed-hosts'
import type { PinnedConnections } from '@parley/kit/net/pinned-connections'
import { guardedFetch } from '@parley/kit/net/pinned-fetch'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import { z } from 'zod'
import { AgentUnreachable } from './agent-errors.ts'

/** The parts of a request that authenticate its sender. */
export interface Authorization {
  headers: Record<string, string>
  /** Added to the query of the URL. */
  query?: { name: string; value: string }
}

export interface CredentialSource {
  /** @throws AgentUnreachable if a token cannot be obtained */
  authorization(signal: AbortSignal): Promise<Authorization>
  /** Called after a refusal of the authorization. Returns whether another attempt may succeed. */
  refused(given: Authorization): boolean
}

export interface TokenRequests {
  connections: PinnedConnections
  allowed: AllowedHosts
}

export function credentialSource(
  given: AgentCredential | undefined,
  requests: TokenRequests,
): CredentialSource {
  if (given?.kind === 'oauth2') return new OAuthTokens(given, requests)
  const authorization = fixedAuthorization(given)
  return { authorization: async () => authorization, refused: () => false }
}

function fixedAuthorization(given: Exclude<AgentCredential, { kind: 'oauth2' }> | undefined): Authorization {
  if (given === undefined) return { headers: {} }
  if (given.kind === 'bearer') return { headers: { authorization: `Bearer ${given.token}` } }
  const { name, value } = given
  if (given.in === 'header') return { headers: { [name.toLowerCase()]: value } }
  if (given.in === 'cookie') return { headers: { cookie: `${name}=${value}` } }
  return { headers: {}, query: { name, value } }
}

const tokenAnswer = z.object({
  access_token: z.string().regex(/^[\x21-\x7e]{1,16384}$/),
  expires_in: z.coerce.number().nonnegative().default(300),
})
const [tokenTimeoutMs, tokenMaxBytes] = [10_000, 64 * 1024]

/**
 * Obtains tokens with client credentials (RFC 6749, section 4.4) from the OAuth server that the agent's card names. Caches
 * each token for four fifths of its lifetime. Concurrent requests share one token.
 */
class OAuthTokens implements CredentialSource {
  readonly #client: Extract<AgentCredential, { kind: 'oauth2' }>
  readonly #requests: TokenRequests
  #token: { text: string; until: number } | undefined
  #pending: Promise<string> | undefined

  constructor(client: Extract<AgentCredential, { kind: 'oauth2' }>, requests: TokenRequests) {
    this.#client = client
    this.#requests = requests
  }

  async authorization(): Promise<Authorization> {
    return { headers: { authorization: `Bearer ${await this.#get()}` } }
  }

  refused({ headers }: Authorization): boolean {
    // A newer token is kept.
    if (headers['authorization'] === `Bearer ${this.#token?.text}`) this.#token = undefined
    return true
  }

  async #get(): Promise<string> {
    if (this.#token !== undefined && Date.now() < this.#token.until) return this.#token.text
    this.#pending ??= this.#request().finally(() => {
      this.#pending = undefined
    })
    return this.#pending
  }

  async #request(): Promise<string> {
    // Servers support HTTP Basic (RFC 6749, section 2.3.1). Some accept the secret in the body only.
    let { status, json } = await this.#post(true)
    if (status === 400 || status === 401) ({ status, json } = await this.#post(false))
    const answer = tokenAnswer.safeParse(json).data
    if (status !== 200 || answer === undefined)
      throw new AgentUnreachable(
        status === 200
          ? "The agent's OAuth server answered without a token"
          : `The agent's OAuth server refused to issue a token (HTTP ${status})`,
        { received: false },
      )
    this.#token = { text: answer.access_token, until: Date.now() + answer.expires_in * 800 }
    return answer.access_token
  }

  async #post(isBasic: boolean): Promise<{ status: number; json: unknown }> {
    const { tokenUrl, clientId, clientSecret, scope } = this.#client
    const form = new URLSearchParams({ grant_type: 'client_credentials' })
    if (scope !== undefined) form.set('scope', scope)
    if (!isBasic) {
      form.set('client_id', clientId)
      form.set('client_secret', clientSecret)
    }
    const basic = [clientId, clientSecret].map(encodeURIComponent).join(':')
    try {
      const { status, body } = await guardedFetch(tokenUrl, {
        method: 'POST',
        headers: {
          'content-type': 'application/x-www-form-urlencoded',
          accept: 'application/json',
          ...(isBasic && { authorization: `Basic ${Buffer.from(basic).toString('base64')}` }),
        },
        body: form.toString(),
        timeoutMs: tokenTimeoutMs,
        maxBytes: tokenMaxBytes,
        ...this.#requests,
      })
      return { status, json: jsonObjectOf(body.toString('utf8')) }
    } catch (cause) {
      throw new AgentUnreachable("The agent's OAuth server could not be reached", { received: false, cause })
    }
  }
}
