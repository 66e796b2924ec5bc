import { hash } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import { jsonOf } from '@parley/wire/model/json-text'
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  errors,
  type JWTPayload,
  type JWTVerifyGetKey,
  jwtVerify,
} from 'jose'
import { request } from 'undici'
import { z } from 'zod'
import { RecentMap } from '../did/recent-map.ts'
import { boundedText } from '../net/bounded-text.ts'
import { type Introspection, type Introspector, introspectionClaims } from './introspection.ts'

/** The `typ` of a statement, which distinguishes it from every other JWT. */
export const statementType = 'parley-statement+jwt'
export const statementAlgorithm = 'EdDSA'
/** The path below the gateway's URL at which agents exchange statements (RFC 8693). */
export const statementExchangePath = '/oauth2/token'
/** The type of a statement in a token exchange (RFC 8693, section 3). */
export const statementTokenType = 'urn:ietf:params:oauth:token-type:jwt'
/** The path of the gateway's public keys, below its URL. */
export const statementKeysPath = '/.well-known/jwks.json'

const keysMax = 64
/** The keys that sign a gateway's statements (RFC 7517), and the gateway's issuer. */
const keySet = z.object({
  issuer: z.string(),
  keys: z.array(z.looseObject({ kty: z.string(), kid: z.string() })).max(keysMax),
})

/** The answer of a gateway that signs no statements. A proxy in front of a gateway that starts may return 404 as well. */
const signsNone = z.object({ error: z.object({ data: z.object({ reason: z.literal('statement_keys') }) }) })

const timeoutMs = 2000
/** Keys are fetched again after this time, so that a removed key is no longer accepted. */
const keysMaxAgeMs = 300_000
/** An unknown key or a failure does not cause requests to the gateway more often than this. */
const refetchMs = 3000
/** Tolerated difference between the clocks of the gateway and the agent. */
const toleranceSeconds = 5
/** A statement that is valid for longer than this was not issued by a gateway. */
const lifetimeMaxSeconds = 300
const statementsMax = 5000

interface Keys {
  issuer: string
  keyFor: JWTVerifyGetKey
  ids: ReadonlySet<string>
  fetchedAt: number
}

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
  readonly #url: string
  readonly #verified = new RecentMap<string, VerifiedStatement>(statementsMax)
  #keys: Keys | undefined
  #fetching: Promise<Keys> | undefined
  #attemptedAt = Number.NEGATIVE_INFINITY

  /** @param gatewayUrl the address of the gateway that the agent has joined */
  constructor(gatewayUrl: string) {
    this.#url = gatewayUrl.replace(/\/+$/, '') + statementKeysPath
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
    const keys = await this.#keysFor(kid)
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
    const { issuer } = this.#keys ?? (await this.#keysFor(undefined))
    return issuer === '' ? undefined : [issuer]
  }

  /** Returns the current keys. Fetches them if they are old, or do not contain the key. */
  async #keysFor(kid: string | undefined): Promise<Keys> {
    const now = performance.now()
    const known = this.#keys
    const isFresh = known !== undefined && now - known.fetchedAt < keysMaxAgeMs
    if (isFresh && (kid === undefined || known.ids.has(kid))) return known
    if (now - this.#attemptedAt < refetchMs && this.#fetching === undefined) {
      if (isFresh) return known
      throw gatewayUnavailable(undefined)
    }
    this.#attemptedAt = this.#fetching === undefined ? now : this.#attemptedAt
    this.#fetching ??= this.#fetch().finally(() => {
      this.#fetching = undefined
    })
    return this.#fetching.catch((error: unknown) => {
      if (isFresh) return known
      throw gatewayUnavailable(error)
    })
  }

  async #fetch(): Promise<Keys> {
    const fetchedAt = performance.now()
    const response = await request(this.#url, {
      signal: AbortSignal.timeout(timeoutMs),
      headers: { accept: 'application/json' },
    })
    const text = await boundedText(response.body)
    if (response.statusCode === 404 && signsNone.safeParse(jsonOf(text)).success)
      return this.#use({ issuer: '', keys: [] }, fetchedAt)
    if (response.statusCode !== 200) throw new Error(`${this.#url} returned ${response.statusCode}`)
    return this.#use(keySet.parse(JSON.parse(text)), fetchedAt)
  }

  #use({ issuer, keys }: z.infer<typeof keySet>, fetchedAt: number): Keys {
    this.#keys = {
      issuer,
      keyFor: createLocalJWKSet({ keys }),
      ids: new Set(keys.map(({ kid }) => kid)),
      fetchedAt,
    }
    return this.#keys
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

function gatewayUnavailable(cause: unknown): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'The gateway’s keys cannot be read, so its statement cannot be verified',
    data: { reason: 'gateway_keys' },
    headers: { 'retry-after': '3' },
    cause,
  })
}
