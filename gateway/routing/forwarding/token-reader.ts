import { hash } from 'node:crypto'
import type { Authenticator } from '@parley/kit/auth/authenticate'
import { RecentMap } from '@parley/kit/did/recent-map'
import { ParleyError } from '@parley/wire/errors'
import type { FastifyRequest } from 'fastify'
import { isExternal } from '../../registry/admission.ts'
import type { AgentEntry } from '../../registry/entry.ts'
import { declaresBearer, requireForwarding, type TokenInfo, tokenInfoOf } from './token-forwarding.ts'

const tokensMax = 10_000

/** Checks the tokens of requests that name their agent. Authentication itself is left to the agent. */
export class TokenReader {
  readonly #authenticator: Pick<Authenticator, 'identify'>
  readonly #gatewayUrl: string
  /** Keyed by a hash of the header. A token's audience and scope never change; the agent checks whether it is active. */
  readonly #known = new RecentMap<string, TokenInfo>(tokensMax)

  constructor(authenticator: Pick<Authenticator, 'identify'>, gatewayUrl: string) {
    this.#authenticator = authenticator
    this.#gatewayUrl = gatewayUrl
  }

  /**
   * Sets `request.token` if the agent accepts bearer tokens.
   * @throws ParleyError InsufficientPermissions; for external agents, also AuthenticationRequired, InvalidToken and
   * TokenExpired; Unavailable if the OAuth server does not respond
   */
  async check(request: FastifyRequest, entry: AgentEntry): Promise<void> {
    const { authorization } = request.headers
    if (authorization === undefined || (isExternal(entry) && !declaresBearer(entry.card))) return
    // Each request with a bound token has its own proof.
    if (/^dpop /i.test(authorization)) await this.#authenticator.identify(request)
    const name = hash('sha256', authorization, 'base64')
    let token = this.#known.get(name)
    if (token === undefined) {
      token = await this.#read(request, entry)
      if (token !== notOurs) this.#known.set(name, token)
    }
    request.token = token
    requireForwarding(entry, token)
  }

  async #read(request: FastifyRequest, entry: AgentEntry): Promise<TokenInfo> {
    try {
      return tokenInfoOf(await this.#authenticator.identify(request), this.#gatewayUrl)
    } catch (error) {
      const isRefused = error instanceof ParleyError && error.error !== 'Unavailable'
      // Supervised agents reject inactive tokens themselves.
      if (isRefused && !isExternal(entry)) return notOurs
      throw error
    }
  }
}

const notOurs: TokenInfo = Object.freeze({ audience: [], isOperator: false, gatewayUrl: '' })
