import { hash } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose'
import { RecentMap } from '../did/recent-map.ts'
import { type Introspection, type Introspector, introspectionClaims } from './introspection.ts'
import { PublishedKeys } from './published-keys.ts'

/** The `typ` of a statement, which distinguishes it from every other JWT. */
export const statementType = 'parley-statement+jwt'
export const statementAlgorithm = 'EdDSA'
/** The path below the gateway's URL at which agents exchange statements (RFC 8693). */
export const statementExchangePath = '/oauth2/token'
/** The type of a statement in a token exchange (RFC 8693, section 3). */
export const statementTokenType = 'urn:ietf:params:oauth:token-type:jwt'
/** The path of the gateway's public keys, below its URL. */
export const statementKeysPath = '/.well-known/jwks.json'

/** Tolerated difference between the clocks of the gateway and the agent. */
const toleranceSeconds = 5
/** A statement that is valid for longer than this was not issued by a gateway. */
const lifetimeMaxSeconds = 300
const statementsMax = 5000

interface VerifiedStatement {
  introspection: Introspection
  /** Seconds since 1970. */
  exp: number
}

/**
 * Verifies the statements with which a gateway vouches for a caller, if the OAuth server cannot exchange tokens
 * (spec/authentication.md#statements). The audience is left to the Authenticator, which knows the agent's names.
 */
export class StatementVerifier {
  readonly #keys: PublishedKeys
  readonly #verified = new RecentMap<string, VerifiedStatement>(statementsMax)

  /** @param gatewayUrl the address of the gateway that the agent has joined */
  constructor(gatewayUrl: string) {
    this.#keys = new PublishedKeys(gatewayUrl, statementKeysPath)
  }

  /**
   * Returns what the statement says in the form of an introspection response; an invalid statement is not active.
   * @throws ParleyError Unavailable if the gateway's keys are needed and cannot be fetched
   */
  async verify(statement: string): Promise<Introspection> {
    const name = hash('sha256', statement, 'base64url')
    const known = this.#verified.get(name)
    if (known !== undefined) return stillValid(known)
    const { kid } = decodeProtectedHeader(statement)
    const keys = await this.#keys.with(kid)
    try {
      const { payload } = await jwtVerify(statement, keys.keyFor, {
        algorithms: [statementAlgorithm],
        typ: statementType,
        issuer: keys.issuer,
        requiredClaims: ['aud', 'iat', 'exp'],
        clockTolerance: toleranceSeconds,
      })
      const verified = read(payload, keys.issuer)
      if (verified === undefined) return { active: false }
      this.#verified.set(name, verified)
      return stillValid(verified)
    } catch (error) {
      if (error instanceof errors.JWTExpired && typeof error.payload.exp === 'number')
        return { active: false, exp: error.payload.exp }
      if (error instanceof errors.JOSEError || error instanceof TypeError) return { active: false }
      throw error
    }
  }

  /**
   * Returns the addresses that name gateways in the `act` of the OAuth server's tokens. Undefined if the gateway signs no
   * statements, because it has its own OAuth server.
   * @throws ParleyError Unavailable if the gateway's keys cannot be fetched
   */
  async gateways(): Promise<readonly string[] | undefined> {
    // Keys of any age will do: a gateway keeps its address.
    const { issuer } = this.#keys.known ?? (await this.#keys.with(undefined))
    return issuer === '' ? undefined : [issuer]
  }
}

/**
 * Introspects tokens with the OAuth server, except for statements of the gateway, which it verifies. A party that acts
 * with another token counts as a gateway only if it is the gateway that the agent has joined.
 */
export function acceptingStatements(
  inner: Introspector & { ping(): Promise<void> },
  statements: Pick<StatementVerifier, 'verify' | 'gateways'>,
): Introspector & { ping(): Promise<void> } {
  return {
    introspect: async (token) => {
      if (isStatement(token)) return statements.verify(token)
      const answer = await inner.introspect(token)
      if (!answer.active || answer.act === undefined) return answer
      const gateways = await statements.gateways()
      return gateways === undefined ? answer : { ...answer, gateways }
    },
    ping: () => inner.ping(),
  }
}

/** Whether the token has the form of a statement. Its signature is not checked. */
export function isStatement(token: string): boolean {
  if (!token.startsWith('eyJ')) return false
  try {
    return decodeProtectedHeader(token).typ === statementType
  } catch {
    return false
  }
}

/** The gateway that the statement names as its issuer. Its signature is not checked. */
export function statementIssuer(statement: string): string | undefined {
  return decodeJwt(statement).iss
}

function read(
  { aud, iat = 0, exp = 0, ...payload }: JWTPayload,
  issuer: string,
): VerifiedStatement | undefined {
  if (exp - iat > lifetimeMaxSeconds || iat > Date.now() / 1000 + toleranceSeconds) return undefined
  const { client_id, sub, scope, act } = payload
  const introspection = introspectionClaims.safeParse({
    active: true,
    client_id,
    sub,
    scope,
    act,
    aud,
    exp,
  }).data
  const isComplete = introspection?.client_id !== undefined && [aud ?? []].flat().length > 0
  if (!isComplete) return undefined
  return { introspection: { ...introspection, ...(act !== undefined && { gateways: [issuer] }) }, exp }
}

/** The tolerance applies to `exp` too, which the Authenticator compares without a tolerance. */
function stillValid({ introspection, exp }: VerifiedStatement): Introspection {
  if (exp + toleranceSeconds <= Date.now() / 1000) return { active: false, exp }
  return { ...introspection, exp: exp + toleranceSeconds }
}
