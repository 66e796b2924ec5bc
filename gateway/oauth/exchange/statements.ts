import { type Introspection, introspectionClaims, nestedActors } from '@parley/kit/auth/introspection'
import { statementAlgorithm, statementType } from '@parley/kit/auth/statement'
import { type CryptoKey, createLocalJWKSet, errors, importJWK, type JWK, jwtVerify, SignJWT } from 'jose'
import { z } from 'zod'
import type { SecretFiles } from '../../keys/secret-files.ts'
import type { Claims } from '../../store/claims.ts'
import { loadStatementKeys, type StatementKey } from '../key-files.ts'

/** A gateway publishes its keys again after this time, and its keys are removed a day after it stopped doing so. */
const publishEveryMs = 3_600_000
const publishedForMs = 86_400_000
/** Tolerated difference between the clocks of gateways. */
const clockSeconds = 5
/** Each key is published as a claim whose holder contains its id and the public key. */
const claimPrefix = 'statement-key '

export interface Statement {
  introspection: Introspection
  /** The only agent that may accept the statement. */
  audience: string
  actors: readonly string[]
  lifetimeSeconds: number
  /** The caller's token, sealed. Absent if the agent must not exchange the statement. */
  sealedSubject?: string | undefined
}

/** The content of a statement that a gateway of this deployment has signed, and that may have expired. */
export type ReadStatement = z.infer<typeof statementClaims>

const statementClaims = introspectionClaims.pick({ sub: true, scope: true, act: true }).extend({
  client_id: z.string(),
  aud: z.string(),
  iat: z.number(),
  exp: z.number(),
  sealed_subject: z.string().optional(),
})

export interface StatementSignerOptions {
  files: SecretFiles
  /** The public URL of the gateway. */
  issuer: string
  /** Undefined if the store is not shared with other gateways. */
  claims: Claims | undefined
  /** Called if the keys cannot be published again. */
  onFailure: (error: unknown) => void
}

/**
 * Signs statements about callers, and publishes the keys of all gateways on the database, because any of them may answer
 * an agent's request for the keys.
 */
export class StatementSigner implements Disposable {
  readonly #options: StatementSignerOptions
  readonly #keys: readonly StatementKey[]
  readonly #signingKey: CryptoKey | Uint8Array
  readonly #timer: NodeJS.Timeout

  private constructor(
    options: StatementSignerOptions,
    keys: StatementKey[],
    signingKey: CryptoKey | Uint8Array,
  ) {
    this.#options = options
    this.#keys = keys
    this.#signingKey = signingKey
    const publish = () => void this.#publish().catch(options.onFailure)
    this.#timer = setInterval(publish, publishEveryMs).unref()
  }

  static async start(options: StatementSignerOptions): Promise<StatementSigner> {
    const keys = await loadStatementKeys(options.files)
    const signer = new StatementSigner(options, keys, await importJWK({ ...keys[0] }, statementAlgorithm))
    await signer.#publish()
    return signer
  }

  sign({ introspection, audience, actors, lifetimeSeconds, sealedSubject }: Statement): Promise<string> {
    const { client_id, sub, scope } = introspection
    const act = nestedActors(actors)
    return new SignJWT({
      client_id: client_id ?? sub,
      ...(sub !== undefined && { sub }),
      scope,
      act,
      ...(sealedSubject !== undefined && { sealed_subject: sealedSubject }),
    })
      .setProtectedHeader({ alg: statementAlgorithm, typ: statementType, kid: this.#keys[0]?.kid ?? '' })
      .setIssuer(this.#options.issuer)
      .setAudience(audience)
      .setIssuedAt()
      .setExpirationTime(Math.floor(Date.now() / 1000) + lifetimeSeconds)
      .sign(this.#signingKey)
  }

  /**
   * Returns the content of a statement of any gateway on the database, or undefined for any other text. Its audience is not
   * checked, and neither is its expiry within the tolerance.
   */
  async read(statement: string, expiryToleranceSeconds: number): Promise<ReadStatement | undefined> {
    const { issuer, keys } = await this.keySet()
    try {
      const { payload } = await jwtVerify(statement, createLocalJWKSet({ keys }), {
        algorithms: [statementAlgorithm],
        typ: statementType,
        issuer,
        clockTolerance: expiryToleranceSeconds,
      })
      const claims = statementClaims.safeParse(payload).data
      return claims !== undefined && claims.iat <= Date.now() / 1000 + clockSeconds ? claims : undefined
    } catch (error) {
      if (error instanceof errors.JOSEError || error instanceof TypeError) return undefined
      throw error
    }
  }

  /** Returns the public keys of all gateways on the database as a JWK set (RFC 7517), with their issuer. */
  async keySet(): Promise<{ issuer: string; keys: JWK[] }> {
    const published = (await this.#options.claims?.holders(claimPrefix)) ?? []
    const keys = new Map(this.#keys.map(({ kid, x }) => [kid, x]))
    for (const holder of published) {
      const [kid = '', x = ''] = holder.slice(claimPrefix.length).split(' ')
      keys.set(kid, x)
    }
    const common = { kty: 'OKP', crv: 'Ed25519', use: 'sig', alg: statementAlgorithm }
    return { issuer: this.#options.issuer, keys: [...keys].map(([kid, x]) => ({ ...common, kid, x })) }
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  async #publish(): Promise<void> {
    const { claims } = this.#options
    for (const { kid, x } of this.#keys)
      await claims?.hold(claimPrefix + kid, `${claimPrefix}${kid} ${x}`, publishedForMs)
  }
}
