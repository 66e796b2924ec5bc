import type { Introspection, Introspector } from '@parley/kit/auth/introspection'
import { z } from 'zod'
import { Seal } from '../exchange/sealed-tokens.ts'
import type { Account, Accounts } from './accounts.ts'

const accountClaims = z.object({
  name: z.string(),
  clientId: z.string(),
  epoch: z.string(),
  scope: z.string(),
  iat: z.number(),
  exp: z.number(),
})

const prefix = 'pct_'
const lifetimeSeconds = 3600
/** The same token is issued during this time, so that its exchanged tokens can be cached. */
const sameSeconds = 600
const tokenMaxChars = 2048

export function isAccountToken(token: string): boolean {
  return token.startsWith(prefix)
}

/**
 * Issues and introspects the tokens with which the console acts for people if the OAuth server is an external one. Only this
 * gateway and the others on its database accept them, and agents receive signed statements instead. A token ends
 * when its account is removed, disabled or gets another password.
 */
export class AccountTokens implements Introspector {
  readonly #seal: Seal<z.infer<typeof accountClaims>>
  readonly #accounts: Pick<Accounts, 'find'>
  readonly #introspector: Introspector
  readonly #issued = new Map<string, { text: string; until: number }>()

  /**
   * @param secretKey bytes that the gateways on one database share
   * @param introspector introspects all other tokens
   */
  constructor(secretKey: Uint8Array, accounts: Pick<Accounts, 'find'>, introspector: Introspector) {
    this.#seal = new Seal(
      { prefix, purpose: 'parley console token', schema: accountClaims, maxChars: tokenMaxChars },
      [secretKey],
    )
    this.#accounts = accounts
    this.#introspector = introspector
  }

  issue({ name, clientId, epoch }: Account, scope: string): string {
    const now = seconds()
    const key = `${name} ${epoch} ${scope}`
    const issued = this.#issued.get(key)
    if (issued !== undefined && issued.until > now) return issued.text
    for (const [other, { until }] of this.#issued) if (until <= now) this.#issued.delete(other)
    const text = this.#seal.seal({ name, clientId, epoch, scope, iat: now, exp: now + lifetimeSeconds })
    this.#issued.set(key, { text, until: now + sameSeconds })
    return text
  }

  async introspect(token: string): Promise<Introspection> {
    if (!isAccountToken(token)) return this.#introspector.introspect(token)
    const claims = this.#seal.open(token)
    if (claims === undefined) return { active: false }
    const { name, clientId, epoch, scope, exp } = claims
    if (exp <= seconds()) return { active: false, exp }
    const account = await this.#accounts.find(name)
    const isCurrent = account?.epoch === epoch && !account.disabled && account.clientId === clientId
    if (!isCurrent) return { active: false }
    return { active: true, client_id: clientId, sub: clientId, scope, exp, token_type: 'Bearer' }
  }
}

const seconds = () => Math.floor(Date.now() / 1000)
