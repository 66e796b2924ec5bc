import { randomUUID } from 'node:crypto'
import { actingAgents } from '@parley/kit/auth/caller'
import type { Introspection } from '@parley/kit/auth/introspection'
import { operatorScope, scopes } from '../client-rules.ts'
import { delegatesOf, revocationModel, type TokenIntrospection } from '../introspect.ts'
import type { OAuthStore } from '../oauth-store.ts'
import { partiesOf, resourceRefused, type TokenPolicy } from '../token-policy.ts'
import type { ExchangedClaims, SealedTokens } from './sealed-tokens.ts'

/** Why a token is not exchanged. */
export type RefusalReason =
  | 'expired'
  | 'inactive'
  | 'operator_token'
  | 'wrong_audience'
  | 'chain_too_long'
  | 'already_in_chain'
  | 'bound_to_key'
  | 'no_scope'
  | 'not_operator'
  | 'too_large'
  | 'resource'

export class ExchangeRefused extends Error {
  override readonly name = 'ExchangeRefused'
  readonly reason: RefusalReason

  constructor(reason: RefusalReason, message: string) {
    super(message)
    this.reason = reason
  }
}

export interface ExchangeRequest {
  /** The token to exchange. */
  subject: string
  /** The URL of a gateway, or the client id of an agent. */
  actor: string
  /** The names by which the audience of the subject token may name the actor. */
  names: readonly string[]
  /** The names of the recipient, which the audience may name too, unless the subject token was itself exchanged. */
  recipientNames?: readonly string[]
  /** The only server that may accept the new token. */
  resource: string
  /** Requested scopes. By default, all scopes of the subject token. */
  scope?: string | undefined
  /** The scopes of the acting client, which also limit the new token. By default, they are not limited. */
  actorScope?: string | undefined
  /** Whether the gateway requests access to the agent's ledger for an operator. */
  ledger?: boolean
  /** The thumbprint of the key that signed the request (RFC 9449), to which the new token is bound. */
  jkt?: string | undefined
}

export interface ExchangedToken {
  text: string
  jti: string
  scope: string
  clientId: string
  /** Seconds since 1970. */
  exp: number
}

export const lifetimeSeconds = 300
export const ledgerLifetimeSeconds = 60
/** Only `ledger` requests of the gateway lead to this scope. It is not in `scopes`, so no client can request or hold it. */
const ledgerScope = 'agent:ledger'
/** An agent may renew its token this long after the expiry, because a task may take longer than the token's lifetime. */
export const renewableSeconds = 86_400
/** The number of agents that may act for a client in one chain. */
export const delegatesMax = 5

/**
 * The time for which a revocation is stored, at most. It covers all tokens that may have been exchanged from the revoked
 * one: each of at most six agents and gateways in turn may renew for a day.
 */
const revocationSeconds = 8 * 86_400

export interface TokenExchangerOptions {
  introspection: TokenIntrospection
  sealed: SealedTokens
  store: OAuthStore
  /** The policies of the agents. By default, every party gets tokens for every server. */
  policy?: TokenPolicy | undefined
}

/** Exchanges this server's tokens (RFC 8693). An exchanged token is sealed, so that nothing is stored. */
export class TokenExchanger {
  readonly #introspection: TokenIntrospection
  readonly #sealed: SealedTokens
  readonly #store: OAuthStore
  readonly #policy: TokenPolicy | undefined

  constructor({ introspection, sealed, store, policy }: TokenExchangerOptions) {
    this.#policy = policy
    this.#introspection = introspection
    this.#sealed = sealed
    this.#store = store
  }

  /** @throws ExchangeRefused */
  async exchange(request: ExchangeRequest): Promise<ExchangedToken> {
    const { answer, source } = await this.#introspection.read(request.subject)
    const now = Math.floor(Date.now() / 1000)
    const subject = source?.exchanged
    if (source === undefined) throw inactiveRefusal(answer)
    if (!answer.active && !mayRenew(subject, request, now))
      throw new ExchangeRefused('expired', 'The token has expired: get a new one')
    const { client_id: clientId = '', sub } = subject === undefined ? answer : answerFor(subject)
    const { names, recipientNames = [] } = request
    requireAudience(subject?.aud ?? answer.aud, subject === undefined ? [...names, ...recipientNames] : names)
    requireHolder(subject?.jkt ?? answer.cnf?.jkt, request)
    const actors = actorsWith(request.actor, clientId, subject?.actors ?? [])
    const parties = partiesOf(clientId, actors)
    if (this.#policy !== undefined && !(await this.#policy.mayGetToken(request.resource, parties)))
      throw new ExchangeRefused('resource', resourceRefused)
    const lifetime = request.ledger === true ? ledgerLifetimeSeconds : lifetimeSeconds
    const exp = Math.min(now + lifetime, source.root.exp ?? Number.POSITIVE_INFINITY)
    // The operator may have limited the client's scopes since the subject token was issued.
    const held = answer.scope ?? subject?.scope ?? ''
    const scope =
      request.ledger === true ? ledgerScopeFor(subject === undefined ? held : '') : narrowed(held, request)
    const claims: ExchangedClaims = {
      jti: randomUUID(),
      clientId,
      ...(sub !== undefined && { sub }),
      scope,
      aud: request.resource,
      actors,
      ...(request.jkt !== undefined && { jkt: request.jkt }),
      iat: now,
      exp,
      ancestors: subject === undefined ? [] : [subject.jti, ...subject.ancestors],
      root: source.root,
    }
    return { text: this.#seal(claims), jti: claims.jti, scope, clientId, exp }
  }

  /**
   * Revokes an exchanged token and all tokens that were exchanged from it. Only the client for which the token acts, and
   * the agent that acts with it, may do so.
   * @returns false if the token is not an exchanged token, or the client may not revoke it
   */
  async revoke(token: string, clientId: string): Promise<boolean> {
    const claims = this.#sealed.open(token)
    if (claims === undefined || (claims.clientId !== clientId && claims.actors[0] !== clientId)) return false
    const { jti, root } = claims
    const end = Math.floor(Date.now() / 1000) + revocationSeconds
    const expiresAt = Math.min(end, root.exp ?? end)
    await this.#store.upsert({ model: revocationModel, id: jti, payload: { exp: expiresAt }, expiresAt })
    return true
  }

  #seal(claims: ExchangedClaims): string {
    try {
      return this.#sealed.seal(claims)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      throw new ExchangeRefused('too_large', 'The exchanged token would be too large: use a shorter resource')
    }
  }
}

export function inactiveRefusal({ exp }: Introspection): ExchangeRefused {
  return exp === undefined || exp > Date.now() / 1000
    ? new ExchangeRefused('inactive', 'The token is not active: get a new one')
    : new ExchangeRefused('expired', 'The token has expired: get a new one')
}

/** Only the agent that the token names may renew it, and only for a limited time. */
function mayRenew(subject: ExchangedClaims | undefined, { actor, names }: ExchangeRequest, now: number) {
  if (subject === undefined || delegatesOf([actor]).length === 0) return false
  return isNamed(subject.aud, names) && now < subject.exp + renewableSeconds
}

function answerFor({ clientId, sub }: ExchangedClaims): Pick<Introspection, 'client_id' | 'sub'> {
  return { client_id: clientId, sub }
}

/** @throws ExchangeRefused unless the audience is absent or contains one of the names */
export function requireAudience(aud: Introspection['aud'], names: readonly string[]): void {
  const audience = [aud ?? []].flat()
  if (audience.length === 0 || audience.some((name) => isNamed(name, names))) return
  throw new ExchangeRefused(
    'wrong_audience',
    `The token is for ${audience.join(', ')}: get a token without an audience or for ${names[0] ?? 'this server'}`,
  )
}

/**
 * A token that is bound to a key may be exchanged by the holder of the key only. The gateway has verified the holder's
 * proof. @throws ExchangeRefused
 */
function requireHolder(bound: string | undefined, { actor, jkt }: ExchangeRequest): void {
  if (bound === undefined || bound === jkt || delegatesOf([actor]).length === 0) return
  throw new ExchangeRefused(
    'bound_to_key',
    'The token is bound to a key (DPoP), so only the holder of the key may exchange it: use a token that is not bound',
  )
}

export function isNamed(audience: string, names: readonly string[]): boolean {
  const name = audience.replace(/\/+$/, '')
  return names.some((one) => one.replace(/\/+$/, '') === name)
}

/**
 * Returns all parties that act for the subject, the actor first.
 * @param gateways the addresses that name gateways; by default, each http(s) address does
 * @throws ExchangeRefused if the actor is the subject or already in the chain, or the chain is too long
 */
export function actorsWith(
  actor: string,
  subject: string,
  actors: readonly string[],
  gateways?: readonly string[],
): string[] {
  const agentsOf = (parties: readonly string[]) =>
    actingAgents({ actors: parties, ...(gateways !== undefined && { gateways }) })
  const isAgent = agentsOf([actor]).length > 0
  if (isAgent && (actor === subject || actors.includes(actor)))
    throw new ExchangeRefused(
      'already_in_chain',
      `${actor} is already a party of this token, so it cannot act for its client once more`,
    )
  const chain = actors[0] === actor ? [...actors] : [actor, ...actors]
  if (agentsOf(chain).length > delegatesMax)
    throw new ExchangeRefused(
      'chain_too_long',
      `At most ${delegatesMax} agents may act for a client one after another`,
    )
  return chain
}

/** @throws ExchangeRefused for the operator's scope, or if no scope is left */
export function narrowed(
  held: string,
  { scope: requested, actorScope }: Pick<ExchangeRequest, 'scope' | 'actorScope'> = {},
): string {
  const subject = scopesOf(held)
  if (subject.has(operatorScope))
    throw new ExchangeRefused(
      'operator_token',
      `A token with the scope ${operatorScope} is not exchanged: use a token without that scope`,
    )
  const limits = [subject]
  if (requested !== undefined) limits.push(scopesOf(requested))
  if (actorScope !== undefined) limits.push(scopesOf(actorScope))
  const scope = scopes.filter((name) => limits.every((limit) => limit.has(name))).join(' ')
  if (scope === '')
    throw new ExchangeRefused(
      'no_scope',
      `The token has the scope "${held}", of which the request leaves nothing: request another scope`,
    )
  return scope
}

/** @throws ExchangeRefused unless the operator's own token has the operator's scope */
export function ledgerScopeFor(held: string): string {
  if (scopesOf(held).has(operatorScope)) return ledgerScope
  throw new ExchangeRefused(
    'not_operator',
    `The ledger is for operators: use a token with the scope ${operatorScope}`,
  )
}

/** The scopes in the text, and those that they imply. */
function scopesOf(text: string): Set<string> {
  const names = new Set(text.split(' '))
  return names.has('agent:execute') ? names.add('agent:read').add('agent:write') : names
}
