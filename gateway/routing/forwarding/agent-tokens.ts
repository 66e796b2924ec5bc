import type { Authenticator } from '@parley/kit/auth/authenticate'
import { RecentMap } from '@parley/kit/did/recent-map'
import type { FastifyRequest } from 'fastify'
import type { Recipient, TokenExchange } from '../../oauth/token-exchange.ts'
import { isExternal } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Target } from './agent-target.ts'
import {
  type CallerToken,
  callerTokenOf,
  type GatewayNames,
  isForRecipient,
  isOperator,
  recipientOf,
  takesToken,
  tokenDecision,
  tokenRefused,
} from './caller-token.ts'

/** A target with the `Authorization` that only this agent accepts. */
export interface AuthorizedTarget extends Target {
  /** Undefined if the agent receives no token. */
  authorization: string | undefined
  /** Lets the agent read the tasks that the message refers to (`ReferenceGrants`). */
  references?: string | undefined
  /** Whether the request names the agent. The agent then answers with addresses below `/agents/{slug}`. */
  isNamed?: boolean
}

const tokensMax = 10_000

/** Authorizes requests to agents with tokens that are exchanged for one agent each. */
export class AgentTokens {
  readonly #exchange: TokenExchange
  readonly #gateway: GatewayNames
  /** Keyed by the entry object, because every change to an entry creates a new object. */
  readonly #recipients = new WeakMap<AgentEntry, Recipient>()

  constructor(exchange: TokenExchange, gateway: GatewayNames) {
    this.#exchange = exchange
    this.#gateway = gateway
  }

  /** Whether the agent would receive an exchanged token. */
  mayExchange(entry: AgentEntry, token: CallerToken | undefined): boolean {
    return tokenDecision(entry, token, this.#gateway) === 'exchange'
  }

  /**
   * @throws ParleyError InsufficientPermissions if the token is not valid for the agent; InvalidToken, TokenExpired or
   * Unavailable if it cannot be exchanged
   */
  async authorize(target: Target, token: CallerToken | undefined): Promise<AuthorizedTarget> {
    const decision = tokenDecision(target.entry, token, this.#gateway)
    if (token === undefined || decision === 'omit') return { ...target, authorization: undefined }
    if (decision !== 'exchange') throw tokenRefused(target.entry, decision)
    const exchanged = await this.#exchange.forAgent(token.subject, this.#recipientOf(target.entry))
    return { ...target, authorization: `Bearer ${exchanged}` }
  }

  /**
   * Authorizes an operator's request for the ledger of an agent of this deployment.
   * @throws ParleyError as `authorize`
   */
  async authorizeLedger(target: Target, operator: CallerToken): Promise<AuthorizedTarget> {
    if (!isForRecipient(target.entry, operator, this.#gateway))
      throw tokenRefused(target.entry, 'wrong_audience')
    const exchanged = await this.#exchange.forLedger(operator.subject, this.#recipientOf(target.entry))
    return { ...target, authorization: `Bearer ${exchanged}` }
  }

  #recipientOf(entry: AgentEntry): Recipient {
    const known = this.#recipients.get(entry)
    if (known !== undefined) return known
    const recipient = recipientOf(entry, this.#gateway)
    this.#recipients.set(entry, recipient)
    return recipient
  }

  /** Whether an exchanged token ends with the caller's token, so that the agent's introspection covers both. */
  get endsWithSubject(): boolean {
    return this.#exchange.endsWithSubject
  }
}

/** Routes of Parley's agents that need no token (spec/authentication.md#public-routes). */
const publicPath =
  /^\/(health|metrics|agent\/negotiation)$|^\/(\.well-known|agent\/skills|did|pay|api\/test-wallet)(\/|$)/
const ledgerPath = /^\/payments(\/[^/]+\/(refunded|decide))?$/

/** Authorizes requests that name their agent. The gateway does not authenticate their callers otherwise. */
export class NamedAgentTokens {
  readonly #authenticator: Pick<Authenticator, 'identify'>
  readonly #tokens: AgentTokens
  /** By bearer token. Callers and introspections do not change during its lifetime. */
  readonly #known = new RecentMap<string, CallerToken>(tokensMax)

  constructor(authenticator: Pick<Authenticator, 'identify'>, tokens: AgentTokens) {
    this.#authenticator = authenticator
    this.#tokens = tokens
  }

  /**
   * Sets `request.token` and exchanges the token for the agent.
   * @param path path on the agent, without its base path and the query
   * @throws ParleyError AuthenticationRequired, InvalidToken, TokenExpired, InsufficientPermissions, Unavailable
   */
  async authorize(request: FastifyRequest, target: Target, path: string): Promise<AuthorizedTarget> {
    const { entry } = target
    const { authorization } = request.headers
    if (authorization === undefined) return { ...target, authorization: undefined }
    const isPublic = !takesToken(entry) || (!isExternal(entry) && publicPath.test(path))
    try {
      request.token ??= await this.#read(request, authorization, entry)
    } catch (error) {
      if (!isPublic) throw error
    }
    const { token } = request
    if (token === undefined || isPublic) return { ...target, authorization: undefined }
    if (isOperator(token) && !isExternal(entry) && ledgerPath.test(path))
      return this.#tokens.authorizeLedger(target, token)
    return this.#tokens.authorize(target, token)
  }

  /**
   * Introspects the token unless the agent's introspection of the exchanged token covers it. External agents may omit
   * the introspection. Each request with a token that is bound to a key has its own proof.
   */
  async #read(request: FastifyRequest, authorization: string, entry: AgentEntry): Promise<CallerToken> {
    const text = /^bearer +(\S+)$/i.exec(authorization)?.[1]
    if (text !== undefined && this.#tokens.endsWithSubject && !isExternal(entry)) {
      const known = this.#known.get(text)
      if (known !== undefined) return known
    }
    const token = callerTokenOf(await this.#authenticator.identify(request))
    const { text: known, introspection } = token.subject
    if (introspection.cnf === undefined && !isOperator(token)) this.#known.set(known, token)
    return token
  }
}
