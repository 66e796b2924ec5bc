import { actingAgents } from '@parley/kit/auth/caller'
import { type Introspection, nestedActors } from '@parley/kit/auth/introspection'
import { z } from 'zod'
import { commonScope, findSettings, findUsableClient, restricted } from './clients/client-settings.ts'
import { findKey, isKey, keyIdOf, keyModel } from './clients/long-lived-keys.ts'
import {
  type ExchangedClaims,
  isExchangedToken,
  type SealedTokens,
  storedId,
} from './exchange/sealed-tokens.ts'
import type { OAuthStore } from './oauth-store.ts'
import { partiesIn, policyTag, type TokenPolicy } from './token-policy.ts'

/** The answer about a token, and everything on which it depends. */
export interface Introspected {
  answer: Introspection
  /**
   * `t:<stored id or jti>` of the token, of its ancestors and of its root, `g:<grant id>` and `c:<client id>` of the
   * subject and of each acting client. The answer may change only after a change to one of them.
   */
  tags: readonly string[]
}

/** A token that this server stores, and with which a chain of exchanges may begin. */
export type RootToken = ExchangedClaims['root']

/** A token for which another one may be issued, although it may have expired. */
export interface ReadToken extends Introspected {
  /** Undefined unless this server issued the token and it is active, apart from its own expiry. */
  source?: {
    root: RootToken
    /** Undefined if the token is itself the root. */
    exchanged?: ExchangedClaims
  }
}

/** A token before the settings of its client are applied. */
interface UnrestrictedToken extends ReadToken {
  /** The audience of the stored token. That of an exchanged token is chosen by the party that exchanges it. */
  audience?: string | string[] | undefined
}

export interface TokenIntrospectionOptions {
  store: OAuthStore
  sealed: SealedTokens
  /** Whether the client may act for other clients. */
  mayAct: (clientId: string) => Promise<boolean>
  /** The policies of the agents. By default, a token is active at every agent. */
  policy?: TokenPolicy | undefined
  /** Called for each active token. Must not block or throw. */
  onUse?: (clientId: string) => void
}

const inactive = Object.freeze({ active: false }) satisfies Introspection
const rootModels = ['ClientCredentials', 'AccessToken', keyModel] as const
/** The model of the records that revoke exchanged tokens. */
export const revocationModel = 'RevokedExchange'

const storedToken = z.object({
  clientId: z.string(),
  exp: z.number(),
  scope: z.string().optional(),
  aud: z.union([z.string(), z.array(z.string())]).optional(),
  grantId: z.string().optional(),
  accountId: z.string().optional(),
  /** The thumbprint of the key to which the token is bound (RFC 9449). */
  jkt: z.string().optional(),
})
type StoredToken = z.infer<typeof storedToken>
const storedGrant = z.object({ clientId: z.string(), accountId: z.string(), exp: z.number().optional() })

/**
 * Introspects access tokens as in RFC 7662, but without HTTP. The response for an expired token that was not revoked
 * contains `exp`, so that the caller can report the token as expired.
 */
export class TokenIntrospection {
  readonly #options: TokenIntrospectionOptions

  constructor(options: TokenIntrospectionOptions) {
    this.#options = options
  }

  async introspect(token: string): Promise<Introspected> {
    const { answer, tags } = await this.read(token)
    return { answer, tags }
  }

  /** Introspects the token for an agent. It is inactive there if the agent's policy does not allow its parties. */
  async introspectFor(agentClientId: string, token: string): Promise<Introspected> {
    const { answer, tags } = await this.introspect(token)
    const { policy } = this.#options
    const refused =
      answer.active && policy !== undefined && !(await policy.mayUseAt(agentClientId, partiesIn(answer)))
    return { answer: refused ? inactive : answer, tags: [...tags, policyTag] }
  }

  /** Introspects the token and returns what is needed to exchange it. */
  async read(token: string): Promise<ReadToken> {
    const { audience, ...found } = await this.#read(token)
    const clientId = found.answer.client_id ?? found.source?.exchanged?.clientId
    const settings = clientId === undefined ? undefined : await findSettings(this.#options.store, clientId)
    if (found.answer.active && clientId !== undefined) this.#options.onUse?.(clientId)
    if (settings === undefined) return found
    const answer = restricted(found.answer, settings, audience)
    return answer === undefined ? { answer: inactive, tags: found.tags } : { ...found, answer }
  }

  async #read(token: string): Promise<UnrestrictedToken> {
    if (isExchangedToken(token)) return this.#readExchanged(token)
    if (isKey(token)) return this.#readKey(token)
    const id = storedId(token)
    // This server's tokens have 43 characters, so text of another form is not looked up.
    if (!/^[\w-]{1,64}$/.test(token)) return { answer: inactive, tags: [`t:${id}`] }
    for (const model of rootModels) {
      const found = await this.#find(model, id)
      if (found !== undefined) return this.#readStored({ model, id }, found)
    }
    return { answer: inactive, tags: [`t:${id}`] }
  }

  async #readStored(key: { model: string; id: string }, found: StoredToken): Promise<UnrestrictedToken> {
    const { clientId, exp, scope, aud, grantId, jkt } = found
    const root: RootToken = { ...key, exp, ...(grantId !== undefined && { grantId }) }
    const tags = [...tagsOf(root), `c:${clientId}`]
    if (hasPassed(exp)) return { answer: { active: false, exp }, tags }
    // The client is the subject of its client credentials token. The reference implementation requires `sub`.
    const answer: Introspection = {
      active: true,
      client_id: clientId,
      sub: clientId,
      exp,
      token_type: 'Bearer',
    }
    if (jkt !== undefined) Object.assign(answer, { token_type: 'DPoP', cnf: { jkt } })
    if (key.model === 'AccessToken') {
      const grantEnds = await this.#grantEnd(found)
      if (grantEnds === undefined) return { answer: inactive, tags }
      answer.sub = found.accountId
      // Agents may keep the answer until `exp`, and exchanged tokens end with the root.
      answer.exp = Math.min(exp, grantEnds)
      root.exp = answer.exp
    }
    if (scope !== undefined) answer.scope = scope
    if (aud !== undefined) answer.aud = aud
    return { answer, tags, source: { root }, audience: aud }
  }

  /** A key has the scopes that its client still has. */
  async #readKey(key: string): Promise<UnrestrictedToken> {
    const id = keyIdOf(key)
    const found = await findKey(this.#options.store, key)
    if (found === undefined) return { answer: inactive, tags: [`t:${id}`] }
    const client = await findUsableClient(this.#options.store, found.clientId)
    if (client === undefined) return { answer: inactive, tags: [`t:${id}`, `c:${found.clientId}`] }
    const scope = commonScope(found.scope, String(client['scope']))
    return this.#readStored({ model: keyModel, id }, { ...found, scope })
  }

  async #readExchanged(token: string): Promise<UnrestrictedToken> {
    const claims = this.#options.sealed.open(token)
    if (claims === undefined) return { answer: inactive, tags: [`t:${storedId(token)}`] }
    const { jti, ancestors, root, clientId, actors } = claims
    const clients = [clientId, ...delegatesOf(actors)]
    const tags = [...[jti, ...ancestors].map((id) => `t:${id}`), ...tagsOf(root)]
    tags.push(...clients.map((client) => `c:${client}`))
    const [stored, isActive] = await Promise.all([this.#activeRoot(root), this.#isActive(claims)])
    if (stored === undefined || !isActive) return { answer: inactive, tags }
    const read = { tags, source: { root, exchanged: claims }, audience: stored.aud }
    if (hasPassed(claims.exp)) return { answer: { active: false, exp: claims.exp }, ...read }
    // Agents may keep the answer until `exp`.
    const exp = Math.min(claims.exp, await this.#delegatesEnd(actors))
    return { answer: answerOf({ ...claims, exp }), ...read }
  }

  /** Returns when the first client of the delegates ends. */
  async #delegatesEnd(actors: readonly string[]): Promise<number> {
    const settings = await Promise.all(
      delegatesOf(actors).map((client) => findSettings(this.#options.store, client)),
    )
    return Math.min(...settings.map((one) => one?.expiresAt ?? Number.POSITIVE_INFINITY))
  }

  /** Whether no token of the chain was revoked, and all delegates may still act for clients. */
  async #isActive({ jti, ancestors, actors }: ExchangedClaims): Promise<boolean> {
    const { store, mayAct } = this.#options
    const checks = await Promise.all([
      ...[jti, ...ancestors].map(async (id) => (await store.find(revocationModel, id)) === undefined),
      ...delegatesOf(actors).map((client) => mayAct(client)),
    ])
    return checks.every(Boolean)
  }

  async #activeRoot({ model, id }: RootToken): Promise<StoredToken | undefined> {
    const found = await this.#find(model, id)
    if (found === undefined || hasPassed(found.exp)) return undefined
    return model !== 'AccessToken' || (await this.#grantEnd(found)) !== undefined ? found : undefined
  }

  /** Returns when the token's grant ends, or undefined if there is none or it has ended. */
  async #grantEnd({ clientId, grantId = '', accountId }: StoredToken): Promise<number | undefined> {
    const grant = storedGrant.safeParse(await this.#options.store.find('Grant', grantId)).data
    if (grant?.clientId !== clientId || grant.accountId !== accountId) return undefined
    const { exp = Number.POSITIVE_INFINITY } = grant
    return hasPassed(exp) ? undefined : exp
  }

  async #find(model: string, id: string): Promise<StoredToken | undefined> {
    return storedToken.safeParse(await this.#options.store.find(model, id)).data
  }
}

/** The agents among the actors. Gateways are named by their URL, and forward requests rather than act for the client. */
export function delegatesOf(actors: readonly string[]): string[] {
  return actingAgents({ actors })
}

function answerOf({ clientId, sub, scope, aud, actors, jkt, exp }: ExchangedClaims): Introspection {
  return {
    active: true,
    client_id: clientId,
    ...(sub !== undefined && { sub }),
    scope,
    exp,
    aud,
    act: nestedActors(actors),
    ...(jkt === undefined ? { token_type: 'Bearer' } : { token_type: 'DPoP', cnf: { jkt } }),
  }
}

function tagsOf({ id, grantId }: RootToken): string[] {
  return [`t:${id}`, ...(grantId === undefined ? [] : [`g:${grantId}`])]
}

function hasPassed(exp: number): boolean {
  return exp <= Math.floor(Date.now() / 1000)
}
