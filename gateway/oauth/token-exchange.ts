import type { Introspection } from '@parley/kit/auth/introspection'
import { RecentMap } from '@parley/kit/did/recent-map'
import { type ErrorName, ParleyError } from '@parley/wire/errors'
import {
  type ExchangedToken,
  ExchangeRefused,
  type ExchangeRequest,
  type RefusalReason,
  type TokenExchanger,
} from './exchange/embedded-exchange.ts'
import { storedId } from './exchange/sealed-tokens.ts'

/** The token with which a caller authenticated at the gateway. */
export interface SubjectToken {
  text: string
  /** The result of `hashOf(text)`. */
  hash: string
  /** The answer with which the caller was authenticated. It must not be older than the authentication. */
  introspection: Introspection
}

/** The agent that is to receive a token. */
export interface Recipient {
  /** Id of the registry entry. */
  id: string
  /** The audience of the new token: `resourceOf(entry)`. */
  resource: string
  /** Further names of the agent. A token whose audience names the agent may be exchanged for this agent. */
  names?: readonly string[]
  /** Whether the agent may call others for its callers. By default, it may not. */
  mayAct?: boolean
}

/** Exchanges a caller's token for one that only one agent accepts (RFC 8693). No agent receives the caller's token. */
export interface TokenExchange {
  /**
   * Returns a token for the agent, with the gateway as the actor. Tokens are cached per subject token and agent, and
   * replaced before they expire. Revocation of the subject token ends the returned token.
   * @throws ParleyError TokenExpired, InvalidToken (revoked or unknown), InsufficientPermissions (`operator_token`,
   * `wrong_audience`, `chain_too_long`), Unavailable if the OAuth server does not respond
   */
  forAgent(subject: SubjectToken, recipient: Recipient): Promise<string>
  /**
   * Returns a token with which the gateway accesses the ledger of one agent of this deployment for an operator. It has the
   * scope `agent:ledger` only, which no client can obtain, and is valid for a minute. The operator's token must have been
   * introspected for this request.
   * @throws ParleyError as `forAgent`; InsufficientPermissions if the token lacks the scope `agent:admin`
   */
  forLedger(operator: SubjectToken, recipient: Recipient): Promise<string>
  /**
   * Whether a token of `forAgent` is inactive in the introspection of the agent as soon as the subject token is. If false,
   * the subject token must be introspected for every request.
   */
  readonly endsWithSubject: boolean
}

/** The key of a token in caches. Hashes are cached rather than tokens. */
export function hashOf(token: string): string {
  return storedId(token)
}

const tokensMax = 20_000

interface CachedToken {
  text: string
  /** Milliseconds since 1970. */
  renewAt: number
}

/** Caches tokens per subject token and agent. Concurrent requests share one exchange. */
export class ExchangedTokenCache {
  readonly #tokens = new RecentMap<string, CachedToken>(tokensMax)
  readonly #pending = new Map<string, Promise<string>>()

  /** @param exchange returns the token and the time after which it is replaced */
  get(
    { hash, introspection }: Pick<SubjectToken, 'hash' | 'introspection'>,
    { resource }: Recipient,
    exchange: () => Promise<{ text: string; renewAfterMs: number }>,
  ): Promise<string> {
    const key = `${hash} ${resource}`
    const now = Date.now()
    const cached = this.#tokens.get(key)
    if (cached !== undefined && now < cached.renewAt) return Promise.resolve(cached.text)
    const pending = this.#pending.get(key)
    if (pending !== undefined) return pending
    const started = exchange()
      .then(({ text, renewAfterMs }) => {
        // A token of the cache must not outlive the subject token.
        const end = (introspection.exp ?? Number.POSITIVE_INFINITY) * 1000
        this.#tokens.set(key, { text, renewAt: Math.min(now + renewAfterMs, end) })
        return text
      })
      .finally(() => this.#pending.delete(key))
    this.#pending.set(key, started)
    return started
  }
}

export interface EmbeddedTokenExchangeOptions {
  exchanger: Pick<TokenExchanger, 'exchange'>
  /** The public URL of the gateway, which names it as an actor. */
  gatewayUrl: string
  /** All names by which an audience may name the gateway: its URL and its DID. */
  names: readonly string[]
}

/** Exchanges tokens of the embedded OAuth server without HTTP. */
export class EmbeddedTokenExchange implements TokenExchange {
  readonly endsWithSubject = true
  readonly #options: EmbeddedTokenExchangeOptions
  readonly #cache = new ExchangedTokenCache()

  constructor(options: EmbeddedTokenExchangeOptions) {
    this.#options = options
  }

  forAgent(subject: SubjectToken, recipient: Recipient): Promise<string> {
    return this.#cache.get(subject, recipient, async () => {
      const { text, exp } = await this.#exchange(subject, recipient)
      // A fifth of the lifetime is left to the agent.
      return { text, renewAfterMs: Math.max(0, exp * 1000 - Date.now()) * 0.8 }
    })
  }

  async forLedger(operator: SubjectToken, recipient: Recipient): Promise<string> {
    const { text } = await this.#exchange(operator, recipient, { ledger: true })
    return text
  }

  async #exchange(
    { text }: SubjectToken,
    { resource, names = [] }: Recipient,
    more: Pick<ExchangeRequest, 'ledger'> = {},
  ): Promise<ExchangedToken> {
    const { exchanger, gatewayUrl, names: gatewayNames } = this.#options
    try {
      return await exchanger.exchange({
        subject: text,
        actor: gatewayUrl,
        names: gatewayNames,
        recipientNames: [resource, ...names],
        resource,
        ...more,
      })
    } catch (error) {
      throw refusalOf(error, resource)
    }
  }
}

const refusals: Record<RefusalReason, ErrorName> = {
  expired: 'TokenExpired',
  inactive: 'InvalidToken',
  operator_token: 'InsufficientPermissions',
  wrong_audience: 'InsufficientPermissions',
  chain_too_long: 'InsufficientPermissions',
  already_in_chain: 'InsufficientPermissions',
  bound_to_key: 'InsufficientPermissions',
  no_scope: 'InsufficientPermissions',
  not_operator: 'InsufficientPermissions',
  too_large: 'InvalidParams',
  resource: 'InsufficientPermissions',
}

/** Returns the refusal as the error of a request to the agent. Other errors are returned unchanged. */
export function refusalOf(thrown: unknown, resource: string): unknown {
  if (!(thrown instanceof ExchangeRefused)) return thrown
  const { reason, message } = thrown
  const error = refusals[reason]
  const unauthorized = error === 'TokenExpired' || error === 'InvalidToken'
  return new ParleyError(error, {
    message,
    data: { reason, resource },
    ...(unauthorized && {
      headers: { 'www-authenticate': `Bearer error="invalid_token", error_description="${message}"` },
    }),
  })
}
