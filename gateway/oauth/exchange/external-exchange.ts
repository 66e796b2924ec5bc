import { isDeepStrictEqual } from 'node:util'
import { tokenMaxChars } from '@parley/kit/auth/authenticate'
import { actingAgents } from '@parley/kit/auth/caller'
import { discover } from '@parley/kit/auth/discovery'
import { actorsOf, type Introspection, type Introspector, unavailable } from '@parley/kit/auth/introspection'
import { RecentMap } from '@parley/kit/did/recent-map'
import { boundedText } from '@parley/kit/net/bounded-text'
import type { Log } from '@parley/kit/process/log'
import { jsonOf } from '@parley/wire/model/json-text'
import { request } from 'undici'
import { z } from 'zod'
import { isAccountToken } from '../accounts/account-tokens.ts'
import { isGatewayToken } from '../gateway-tokens.ts'
import {
  ExchangedTokenCache,
  type Recipient,
  refusalOf,
  type SubjectToken,
  type TokenExchange,
} from '../token-exchange.ts'
import { type DelegatedTokens, isDelegatedToken } from './delegated-tokens.ts'
import {
  actorsWith,
  inactiveRefusal,
  isNamed,
  ledgerScopeFor,
  narrowed,
  requireAudience,
} from './embedded-exchange.ts'
import { accessTokenType, exchangeGrantType } from './exchange-grant.ts'
import type { StatementSigner } from './statements.ts'

export interface ExternalTokenExchangeOptions {
  issuer: string
  /** Checks the tokens that the provider issues. */
  introspector: Introspector
  /** The gateway's client at the provider. */
  client: { clientId: string; clientSecret: string }
  /** OAUTH_TOKEN_URL, if the token endpoint of the provider's metadata is not to be used. */
  tokenUrl: string | undefined
  statements: Pick<StatementSigner, 'sign'>
  delegated: Pick<DelegatedTokens, 'sealSubject'>
  /** The public URL of the gateway, which names it as an actor. */
  gatewayUrl: string
  /** All names by which an audience may name the gateway. */
  names: readonly string[]
  log: Log
}

const statementSeconds = 60
/** Half of the lifetime is left to the agent, whose clock may differ. */
const statementRenewMs = 30_000
const timeoutMs = 2000
/** Delay before the next request to the provider, after discovery failed or it refused to exchange for an agent. */
const retryMs = 600_000
const recipientsMax = 10_000
const callersMax = 20_000
/** The provider's tokens, which agents receive instead of the caller's. */
const providerTokenMaxChars = 8000

const tokenResponse = z.object({
  access_token: z.string().min(1).max(providerTokenMaxChars),
  expires_in: z.number().nonnegative().default(60),
})
const errorResponse = z.object({ error: z.string() })
/** The errors that all tokens would cause (RFC 6749, section 5.2; RFC 8693, section 2.2.2). */
const capabilityErrors = new Set([
  'unsupported_grant_type',
  'unauthorized_client',
  'invalid_client',
  'invalid_target',
])

/**
 * Exchanges tokens of an external OAuth server. If the server offers token exchange (RFC 8693), it issues the tokens.
 * Otherwise, or if its tokens are unsuitable, the gateway signs a statement about the caller.
 */
export class ExternalTokenExchange implements TokenExchange {
  /** The server reports no revocations, so the caller's token is introspected for each request. */
  readonly endsWithSubject = false
  readonly #options: ExternalTokenExchangeOptions
  readonly #exchanged = new ExchangedTokenCache()
  readonly #statements = new ExchangedTokenCache()
  /** The agents for which the provider issues no suitable tokens, and the time until which it is not requested again. */
  readonly #unsuitable = new RecentMap<string, number>(recipientsMax)
  /** The same for one token and one agent: `hash resource`. */
  readonly #refused = new RecentMap<string, number>(callersMax)
  /** Undefined if the provider offers no token exchange, as far as is known. */
  #endpoint: string | undefined
  #discoverAt = 0

  constructor(options: ExternalTokenExchangeOptions) {
    this.#options = options
    this.#discover()
  }

  async forAgent(subject: SubjectToken, recipient: Recipient): Promise<string> {
    try {
      this.#check(subject, recipient)
      const scope = narrowed(subject.introspection.scope ?? '')
      // The server may have narrowed the scope since the last request.
      const cached = { ...subject, hash: `${subject.hash} ${scope}` }
      const exchanged = await this.#exchange(cached, recipient, scope)
      if (exchanged !== undefined) return exchanged
      const { mayAct = false } = recipient
      const stated = { ...cached, hash: `${cached.hash} ${mayAct}` }
      return await this.#statements.get(stated, recipient, async () => {
        // An agent that cannot exchange the statement receives no form of the caller's token.
        const sealed = mayAct ? this.#options.delegated.sealSubject(subject.text) : undefined
        return {
          text: await this.#state(subject, recipient, scope, sealed),
          renewAfterMs: statementRenewMs,
        }
      })
    } catch (error) {
      throw refusalOf(error, recipient.resource)
    }
  }

  async forLedger(operator: SubjectToken, recipient: Recipient): Promise<string> {
    try {
      this.#check(operator, recipient)
      const { scope = '', act } = operator.introspection
      return await this.#state(operator, recipient, ledgerScopeFor(act === undefined ? scope : ''))
    } catch (error) {
      throw refusalOf(error, recipient.resource)
    }
  }

  /** @throws ExchangeRefused unless the token is active and its audience allows the request */
  #check({ introspection }: SubjectToken, { resource, names = [] }: Recipient): void {
    const { active, exp = Number.POSITIVE_INFINITY, act, aud } = introspection
    if (!active || exp * 1000 <= Date.now()) throw inactiveRefusal(introspection)
    const { names: gatewayNames } = this.#options
    requireAudience(aud, act === undefined ? [...gatewayNames, resource, ...names] : gatewayNames)
  }

  /** @throws ExchangeRefused if too many agents act for the client */
  async #state(
    { introspection }: SubjectToken,
    { resource }: Recipient,
    scope: string,
    sealedSubject?: string,
  ): Promise<string> {
    const { statements, gatewayUrl } = this.#options
    const { client_id, sub = '', act } = introspection
    const left = (introspection.exp ?? Number.POSITIVE_INFINITY) - Date.now() / 1000
    const statement = {
      introspection: { ...introspection, scope },
      audience: resource,
      actors: actorsWith(gatewayUrl, client_id ?? sub, act === undefined ? [] : actorsOf(act), [gatewayUrl]),
      lifetimeSeconds: Math.floor(Math.min(statementSeconds, left)),
    }
    const signed = await statements.sign({ ...statement, sealedSubject })
    // The agent can still serve the caller, but not call other agents.
    return signed.length <= tokenMaxChars ? signed : statements.sign(statement)
  }

  /** Returns undefined if the provider issues no suitable token for this agent. */
  async #exchange(subject: SubjectToken, recipient: Recipient, scope: string): Promise<string | undefined> {
    if (Date.now() >= this.#discoverAt) this.#discover()
    const endpoint = this.#endpoint
    const { resource } = recipient
    // The server does not know the gateway's own tokens.
    const isOurs = [isDelegatedToken, isAccountToken, isGatewayToken].some((isOne) => isOne(subject.text))
    if (endpoint === undefined || isOurs) return undefined
    const caller = `${subject.hash} ${resource}`
    const until = Math.max(this.#unsuitable.get(resource) ?? 0, this.#refused.get(caller) ?? 0)
    if (Date.now() < until) return undefined
    try {
      return await this.#exchanged.get(subject, recipient, async () => {
        const { access_token: text, expires_in } = await this.#request(
          endpoint,
          subject.text,
          resource,
          scope,
        )
        requireSuitable(await this.#options.introspector.introspect(text), subject.introspection, recipient)
        return { text, renewAfterMs: expires_in * 800 }
      })
    } catch (error) {
      if (!(error instanceof Unsuitable)) throw error
      const { message: reason, concerns } = error
      const { log } = this.#options
      if (concerns === 'caller') {
        this.#refused.set(caller, Date.now() + retryMs)
        log.info(
          { agent: resource, reason },
          'the OAuth server does not exchange one caller’s token for this agent: the gateway signs statements for this caller',
        )
        return undefined
      }
      this.#unsuitable.set(resource, Date.now() + retryMs)
      log.warn(
        { agent: resource, reason },
        'the OAuth server issues no suitable token for this agent: the gateway signs statements instead',
      )
      return undefined
    }
  }

  /** @throws Unsuitable for a refusal, ParleyError Unavailable if the provider does not respond */
  async #request(
    endpoint: string,
    subject: string,
    resource: string,
    scope: string,
  ): Promise<z.infer<typeof tokenResponse>> {
    const { clientId, clientSecret } = this.#options.client
    const form = {
      grant_type: exchangeGrantType,
      subject_token: subject,
      subject_token_type: accessTokenType,
      requested_token_type: accessTokenType,
      resource,
      audience: resource,
      scope,
      client_id: clientId,
      client_secret: clientSecret,
    }
    try {
      const response = await request(endpoint, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' },
        body: new URLSearchParams(form).toString(),
        signal: AbortSignal.timeout(timeoutMs),
      })
      const text = await boundedText(response.body)
      if (response.statusCode >= 500) throw new Error(`the token endpoint returned ${response.statusCode}`)
      if (response.statusCode !== 200) throw refusalBy(response.statusCode, text)
      const parsed = tokenResponse.safeParse(jsonOf(text))
      if (!parsed.success) throw new Unsuitable('agent', 'the token endpoint returned no usable token')
      return parsed.data
    } catch (error) {
      throw error instanceof Unsuitable ? error : unavailable(error)
    }
  }

  /** Reads in the background whether the provider offers token exchange. Statements are used in the meantime. */
  #discover(): void {
    const { issuer, tokenUrl } = this.#options
    this.#discoverAt = Date.now() + retryMs
    const read = async () => {
      const { grant_types_supported: grants, token_endpoint } = await discover(issuer)
      this.#endpoint = grants?.includes(exchangeGrantType) === true ? (tokenUrl ?? token_endpoint) : undefined
    }
    read().catch(() => {
      this.#endpoint = undefined
    })
  }
}

/** The provider's answer is not a token that the agent could use. */
class Unsuitable extends Error {
  override readonly name = 'Unsuitable'
  /** Whether the same is to be expected for all tokens, or concerns the token of one caller. */
  readonly concerns: 'agent' | 'caller'

  constructor(concerns: Unsuitable['concerns'], message: string) {
    super(message)
    this.concerns = concerns
  }
}

/**
 * A caller must not be able to change how other callers' requests are authorized, so an unknown error concerns this caller only.
 */
function refusalBy(status: number, text: string): Unsuitable {
  const error = errorResponse.safeParse(jsonOf(text)).data?.error
  const lacksEndpoint = error === undefined && [404, 405, 501].includes(status)
  const concerns = lacksEndpoint || capabilityErrors.has(error ?? '') ? 'agent' : 'caller'
  const code = error !== undefined && /^[\w.-]{1,64}$/.test(error) ? ` (${error})` : ''
  return new Unsuitable(concerns, `the token endpoint returned ${status}${code}`)
}

/**
 * Some providers issue the token to the gateway's client instead of the caller's, so that all callers would own each
 * other's tasks.
 * @throws Unsuitable if the token must not be used
 */
function requireSuitable(
  token: Introspection,
  subject: Introspection,
  { resource, names = [] }: Recipient,
): void {
  // The caller's token may have ended in the meantime.
  if (!token.active) throw new Unsuitable('caller', 'the new token is not active')
  if (token.client_id !== subject.client_id || token.sub !== subject.sub)
    throw new Unsuitable('agent', 'the new token names another client or subject than the caller’s token')
  if (!isDeepStrictEqual(delegatesIn(token), delegatesIn(subject)))
    throw new Unsuitable('agent', 'the new token names a delegate')
  if (token.cnf !== undefined)
    throw new Unsuitable(subject.cnf === undefined ? 'agent' : 'caller', 'the new token is bound to a key')
  const audience = [token.aud ?? []].flat()
  if (!audience.some((name) => isNamed(name, [resource, ...names])))
    throw new Unsuitable('agent', 'the new token does not name the agent')
  const held = new Set(subject.scope?.split(' '))
  if (token.scope?.split(' ').some((name) => !held.has(name)) === true)
    throw new Unsuitable('agent', 'the new token has more scopes')
}

function delegatesIn({ act, gateways }: Introspection): string[] {
  const actors = act === undefined ? [] : actorsOf(act)
  return actingAgents({ actors, ...(gateways !== undefined && { gateways }) })
}
