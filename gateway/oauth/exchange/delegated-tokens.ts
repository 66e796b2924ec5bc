import { tokenMaxChars } from '@parley/kit/auth/authenticate'
import { actingAgents } from '@parley/kit/auth/caller'
import { actorsOf, type Introspection, type Introspector, nestedActors } from '@parley/kit/auth/introspection'
import { z } from 'zod'
import {
  actorsWith,
  ExchangeRefused,
  inactiveRefusal,
  isNamed,
  lifetimeSeconds,
  narrowed,
  renewableSeconds,
} from './embedded-exchange.ts'
import { Seal } from './sealed-tokens.ts'
import type { ReadStatement, StatementSigner } from './statements.ts'

const subjectClaims = z.object({ token: z.string(), iat: z.number() })
const delegatedClaims = z.object({
  clientId: z.string(),
  sub: z.string().optional(),
  scope: z.string(),
  /** All parties that act for the client, the current one first. */
  actors: z.array(z.string()).min(1),
  iat: z.number(),
  exp: z.number(),
  /** The audience of the statement, which names the agent of the first actor. */
  agent: z.string(),
  /** The caller's token of the OAuth server. */
  token: z.string(),
})
type DelegatedClaims = z.infer<typeof delegatedClaims>

const prefix = 'pdt_'
/** Statements with longer tokens of callers would be longer than servers accept. */
const subjectMaxChars = 5120

export function isDelegatedToken(token: string): boolean {
  return token.startsWith(prefix)
}

export interface DelegatedTokensOptions {
  /** Introspects tokens at the OAuth server. */
  introspector: Introspector
  statements: Pick<StatementSigner, 'read'>
  /** Bytes that the gateways on one database share. They encrypt the callers' tokens. */
  secretKey: Uint8Array
  /** The public URL of the gateway, which names it as an actor. */
  gatewayUrl: string
  /** All names by which an audience may name the gateway. */
  names: readonly string[]
  /** Whether the client belongs to an agent that may act for its callers and, if given, that the audience names. */
  mayAct: (clientId: string, audience?: string) => boolean
  /** Whether the client belongs to an agent that an operator has quarantined. */
  isQuarantined: (clientId: string) => boolean
}

export interface StatementExchangeRequest {
  statement: string
  /** The introspection response of the agent's own token. */
  actor: Introspection
  /** The server to which the new token is to be sent. It must be the gateway. */
  resource: string
  /** Requested scopes. By default, all scopes of the statement. */
  scope?: string | undefined
}

export interface DelegatedToken {
  text: string
  clientId: string
  scope: string
  /** Seconds since 1970. */
  exp: number
}

/**
 * Exchanges statements for tokens with which agents call the gateway for their callers, if the OAuth server is an external
 * one. Statements and these tokens contain the caller's token, encrypted, so that each use is introspected at the OAuth
 * server: it ends when the caller's token ends.
 */
export class DelegatedTokens implements Introspector {
  readonly #options: DelegatedTokensOptions
  readonly #subjects: Seal<z.infer<typeof subjectClaims>>
  readonly #delegated: Seal<DelegatedClaims>

  constructor(options: DelegatedTokensOptions) {
    const secrets = [options.secretKey]
    this.#options = options
    this.#subjects = new Seal(
      { prefix: '', purpose: 'parley statement subject', schema: subjectClaims, maxChars: tokenMaxChars },
      secrets,
    )
    this.#delegated = new Seal(
      { prefix, purpose: 'parley delegated token', schema: delegatedClaims, maxChars: tokenMaxChars },
      secrets,
    )
  }

  /**
   * Returns the caller's token for a statement, sealed. Undefined if the token is too long.
   * @param token a token of the OAuth server, or a delegated token
   */
  sealSubject(token: string): string | undefined {
    const text = this.#delegated.open(token)?.token ?? token
    if (text.length > subjectMaxChars) return undefined
    return this.#subjects.seal({ token: text, iat: now() })
  }

  /** Introspects a token at the OAuth server, or the caller's token in a delegated token. */
  async introspect(token: string): Promise<Introspection> {
    if (!isDelegatedToken(token)) return this.#read(token)
    const claims = this.#delegated.open(token)
    if (claims === undefined) return { active: false }
    const subject = await this.#read(claims.token)
    if (!isActive(subject)) return inactive(subject)
    const { clientId, sub, actors, exp } = claims
    if (exp <= now()) return { active: false, exp }
    const own = ownActors(actors, subject)
    if (!isSubject(subject, claims) || own === undefined || !this.#mayAct(own, claims.agent))
      return { active: false }
    const scope = commonScopes(claims.scope, subject.scope ?? '')
    const { gatewayUrl } = this.#options
    return {
      active: true,
      client_id: clientId,
      ...(sub !== undefined && { sub }),
      scope,
      exp: Math.min(exp, subject.exp ?? exp),
      aud: gatewayUrl,
      act: nestedActors(actors),
      gateways: [gatewayUrl],
      token_type: 'Bearer',
    }
  }

  /** @throws ExchangeRefused; ParleyError Unavailable if the OAuth server does not respond */
  async exchange({ statement, actor, resource, scope }: StatementExchangeRequest): Promise<DelegatedToken> {
    const { statements, gatewayUrl, names, mayAct } = this.#options
    if (!isNamed(resource, names))
      throw new ExchangeRefused('resource', `The token can be issued for the gateway only: ${gatewayUrl}`)
    const stated = await statements.read(statement, renewableSeconds)
    if (stated === undefined)
      throw new ExchangeRefused('inactive', 'The statement is not valid, or it expired more than a day ago')
    const actorId = actor.client_id ?? ''
    if (!mayAct(actorId, stated.aud))
      throw new ExchangeRefused(
        'wrong_audience',
        `The statement is for ${stated.aud}, which is not an admitted agent of the client ${actorId}`,
      )
    const token = this.#subjectOf(stated)
    const subject = await this.#read(token)
    if (!isActive(subject)) throw inactiveRefusal(subject)
    const { client_id: clientId, sub, act } = stated
    const earlier = act === undefined ? [] : actorsOf(act)
    const own = ownActors(earlier, subject)
    if (!isSubject(subject, { clientId, sub }) || own === undefined || !this.#mayAct(own))
      throw new ExchangeRefused(
        'inactive',
        'A party of the statement may no longer act: send the message again',
      )
    const actors = actorsWith(actorId, clientId, earlier, [gatewayUrl])
    if (actingAgents({ actors: [actorId], gateways: [gatewayUrl] }).length === 0)
      throw new ExchangeRefused('already_in_chain', 'The gateway does not exchange statements for itself')
    const held = narrowed(subject.scope ?? '', { scope: stated.scope ?? '', actorScope: actor.scope ?? '' })
    const granted = scope === undefined ? held : narrowed(held, { scope })
    const issued = now()
    const exp = Math.min(issued + lifetimeSeconds, subject.exp ?? Number.POSITIVE_INFINITY)
    const claims = { clientId, ...(sub !== undefined && { sub }), scope: granted, actors, iat: issued, exp }
    return { text: this.#seal({ ...claims, agent: stated.aud, token }), clientId, scope: granted, exp }
  }

  /** @throws ExchangeRefused */
  #seal(claims: DelegatedClaims): string {
    try {
      return this.#delegated.seal(claims)
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      throw new ExchangeRefused(
        'too_large',
        'The new token would be too long: the caller needs a shorter token',
      )
    }
  }

  /** @throws ExchangeRefused */
  #subjectOf({ sealed_subject: sealed }: ReadStatement): string {
    if (sealed === undefined)
      throw new ExchangeRefused(
        'too_large',
        `The statement cannot be exchanged: the caller’s token has more than ${subjectMaxChars} characters, or the agent was not admitted when the message was sent`,
      )
    const opened = this.#subjects.open(sealed)
    if (opened === undefined)
      throw new ExchangeRefused(
        'inactive',
        'The statement was encrypted with another key: send the message again',
      )
    return opened.token
  }

  /**
   * Whether all agents that the gateways have added to a chain may still act.
   * @param audience names the agent of the first client, which may have several agents
   */
  #mayAct(actors: readonly string[], audience?: string): boolean {
    const { gatewayUrl, mayAct } = this.#options
    const clients = actingAgents({ actors, gateways: [gatewayUrl] })
    return clients.every((client, at) => mayAct(client, at === 0 ? audience : undefined))
  }

  /** Introspects a token at the OAuth server, which may name agents of this deployment as actors. */
  async #read(token: string): Promise<Introspection> {
    const { introspector, gatewayUrl, isQuarantined } = this.#options
    const answer = await introspector.introspect(token)
    if (answer.act === undefined) return answer
    const gateways = [gatewayUrl]
    const agents = actingAgents({ actors: actorsOf(answer.act), gateways })
    return agents.some((agent) => isQuarantined(agent)) ? { active: false } : { ...answer, gateways }
  }
}

const now = () => Math.floor(Date.now() / 1000)

function isActive({ active, exp }: Introspection): boolean {
  return active && (exp === undefined || exp > Date.now() / 1000)
}

function inactive({ exp }: Introspection): Introspection {
  return exp === undefined ? { active: false } : { active: false, exp }
}

/** Whether the OAuth server still names the same caller. */
function isSubject(
  { client_id, sub }: Introspection,
  expected: { clientId: string; sub?: string | undefined },
): boolean {
  return (client_id ?? sub) === expected.clientId && sub === expected.sub
}

/**
 * Returns the parties that the gateways have added to those in the caller's token, which its OAuth server is responsible
 * for. Undefined if the caller's token names other parties now.
 */
function ownActors(actors: readonly string[], { act }: Introspection): readonly string[] | undefined {
  const given = act === undefined ? [] : actorsOf(act)
  const start = actors.length - given.length
  return start >= 0 && given.every((actor, at) => actor === actors[start + at])
    ? actors.slice(0, start)
    : undefined
}

function commonScopes(one: string, other: string): string {
  const held = new Set(other.split(' '))
  if (held.has('agent:execute')) held.add('agent:read').add('agent:write')
  return one
    .split(' ')
    .filter((name) => held.has(name))
    .join(' ')
}
