import { statementAlgorithm } from '@parley/kit/auth/statement'
import { type CryptoKey, importJWK, type JWK, type JWTPayload, SignJWT } from 'jose'
import type { SecretFiles } from '../../keys/secret-files.ts'
import type { Claims } from '../../store/claims.ts'
import { loadStatementKeys, type StatementKey } from '../key-files.ts'

/** A gateway publishes its keys again after this time, and its keys are removed a day after it stopped doing so. */
const publishEveryMs = 3_600_000
const publishedForMs = 86_400_000
/** Each key is published as a claim. The holder of the claim contains the id and the public key. */
const claimPrefix = 'statement-key '

export interface StatementKeysOptions {
  files: SecretFiles
  /** The public URL of the gateway. */
  issuer: string
  /** Undefined if the store is not shared with other gateways. */
  claims: Claims | undefined
  /** Called if the keys cannot be published again. */
  onFailure: (error: unknown) => void
}

export interface SignedClaims {
  /** The `typ` of the header, which separates the kinds of statements. */
  type: string
  claims: JWTPayload
  /** The only agent that may accept the statement. */
  audience: string
  lifetimeSeconds: number
}

/**
 * The keys that sign the statements of a gateway. They are published for all gateways on the database, because any of them may
 * answer an agent's request for the keys.
 */
export class StatementKeys implements Disposable {
  readonly issuer: string
  readonly #options: StatementKeysOptions
  readonly #keys: readonly StatementKey[]
  readonly #signingKey: CryptoKey | Uint8Array
  readonly #timer: NodeJS.Timeout

  private constructor(
    options: StatementKeysOptions,
    keys: StatementKey[],
    signingKey: CryptoKey | Uint8Array,
  ) {
    this.issuer = options.issuer
    this.#options = options
    this.#keys = keys
    this.#signingKey = signingKey
    const publish = () => void this.#publish().catch(options.onFailure)
    this.#timer = setInterval(publish, publishEveryMs).unref()
  }

  static async start(options: StatementKeysOptions): Promise<StatementKeys> {
    const loaded = await loadStatementKeys(options.files)
    const keys = new StatementKeys(options, loaded, await importJWK({ ...loaded[0] }, statementAlgorithm))
    await keys.#publish()
    return keys
  }

  sign({ type, claims, audience, lifetimeSeconds }: SignedClaims): Promise<string> {
    const now = Math.floor(Date.now() / 1000)
    return new SignJWT(claims)
      .setProtectedHeader({ alg: statementAlgorithm, typ: type, kid: this.#keys[0]?.kid ?? '' })
      .setIssuer(this.issuer)
      .setAudience(audience)
      .setIssuedAt(now)
      .setExpirationTime(now + lifetimeSeconds)
      .sign(this.#signingKey)
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
    return { issuer: this.issuer, keys: [...keys].map(([kid, x]) => ({ ...common, kid, x })) }
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
