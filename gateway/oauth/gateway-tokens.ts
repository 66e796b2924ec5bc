import type { Introspection, Introspector } from '@parley/kit/auth/introspection'
import { z } from 'zod'
import { Seal } from './exchange/sealed-tokens.ts'
import type { IdentityProvider } from './identity-provider.ts'

const gatewayClaims = z.object({ clientId: z.string(), scope: z.string(), iat: z.number(), exp: z.number() })

const prefix = 'pgt_'
const scope = 'agent:read agent:write'
const lifetimeSeconds = 600
const tokenMaxChars = 1024

export function isGatewayToken(token: string): boolean {
  return token.startsWith(prefix)
}

/**
 * Issues and introspects the tokens with which the gateway itself sends messages if the OAuth server is an external one.
 * Only the gateways on one database accept them, and agents receive signed statements instead.
 */
export class GatewayTokens implements Introspector {
  readonly #seal: Seal<z.infer<typeof gatewayClaims>>
  readonly #clientId: string
  readonly #introspector: Introspector

  /**
   * @param secretKey bytes that the gateways on one database share
   * @param clientId the gateway's client at the OAuth server, which owns the tasks
   * @param introspector introspects all other tokens
   */
  constructor(secretKey: Uint8Array, clientId: string, introspector: Introspector) {
    const form = { prefix, purpose: 'parley gateway token', schema: gatewayClaims, maxChars: tokenMaxChars }
    this.#seal = new Seal(form, [secretKey])
    this.#clientId = clientId
    this.#introspector = introspector
  }

  issue(): string {
    const iat = seconds()
    return this.#seal.seal({ clientId: this.#clientId, scope, iat, exp: iat + lifetimeSeconds })
  }

  async introspect(token: string): Promise<Introspection> {
    if (!isGatewayToken(token)) return this.#introspector.introspect(token)
    const claims = this.#seal.open(token)
    // The client may have changed since.
    if (claims === undefined || claims.clientId !== this.#clientId) return { active: false }
    const { clientId, exp } = claims
    if (exp <= seconds()) return { active: false, exp }
    return {
      active: true,
      client_id: clientId,
      sub: clientId,
      scope: claims.scope,
      exp,
      token_type: 'Bearer',
    }
  }
}

const seconds = () => Math.floor(Date.now() / 1000)

const client = { clientId: 'parley-gateway', clientName: 'Gateway', scope }
/** A token is replaced long before it expires after an hour. */
const renewAfterMs = 30 * 60_000

/** Returns tokens of the client of a gateway with the embedded OAuth server, which is created with the first token. */
export function embeddedGatewayToken(provider: Pick<IdentityProvider, 'ensureClient' | 'issueToken'>) {
  let current: { text: string; renewAt: number } | undefined
  let hasClient = false
  return async (): Promise<string | undefined> => {
    if (current !== undefined && current.renewAt > Date.now()) return current.text
    if (!hasClient) await provider.ensureClient(client)
    hasClient = true
    const text = await provider.issueToken(client.clientId, scope)
    current = text === undefined ? undefined : { text, renewAt: Date.now() + renewAfterMs }
    return text
  }
}
