import { hash } from 'node:crypto'
import { ParleyError } from '@parley/wire/errors'
import { decodeProtectedHeader, errors, type JWTPayload, jwtVerify } from 'jose'
import { z } from 'zod'
import { RecentMap } from '../did/recent-map.ts'
import { type Keys, PublishedKeys } from './published-keys.ts'
import { statementAlgorithm } from './statement.ts'

/** The `typ` of an operator statement, which distinguishes it from every other JWT. */
export const operatorStatementType = 'parley-operator+jwt'
/** The path of the keys that sign operator statements, below the gateway's URL. Every gateway serves it. */
export const operatorKeysPath = '/.well-known/operator-jwks.json'
/** Lifetime of an operator statement. */
export const operatorStatementSeconds = 60

/** The groups of methods. A statement is valid for one of them. */
export const operatorGroups = [
  'tasks.read',
  'tasks.cancel',
  'deliveries.read',
  'deliveries.resend',
  'usage.read',
  'payments.read',
] as const
export type OperatorGroup = (typeof operatorGroups)[number]

/** The groups that change something. Their statements are accepted once. */
const changingGroups: ReadonlySet<OperatorGroup> = new Set(['tasks.cancel', 'deliveries.resend'])

/** Whether each request of the group needs a separate statement, because it is accepted once. */
export function isChangingGroup(group: OperatorGroup): boolean {
  return changingGroups.has(group)
}

/** The person for whom the gateway sends a request, and what this person may see. */
export interface Operator {
  /** The client ID of the person. */
  client: string
  /** The only owner whose entries the person may see. Absent for all owners. */
  owner?: string
  /** Whether texts, artifacts and payloads may leave the agent. */
  texts: boolean
}

/** Tolerated difference between the clocks of the gateway and the agent. */
const toleranceSeconds = 5
const statementsMax = 1000

const claims = z.object({
  sub: z.string().min(1),
  group: z.enum(operatorGroups),
  owner: z.string().min(1).optional(),
  texts: z.boolean(),
  jti: z.string().min(16).max(128),
  aud: z.string(),
  iat: z.number(),
  exp: z.number(),
})
type Claims = z.infer<typeof claims>

export interface OperatorStatementOptions {
  /** The address of the gateway that the agent has joined. */
  gatewayUrl: string
  /** The names of this agent that no other agent has. */
  names: () => readonly string[]
  /** Marks a statement as used. Returns false if it was used before by any process of the agent. */
  takeOnce: (id: Uint8Array, until: number) => Promise<boolean>
}

/**
 * Verifies the statements with which a gateway reads and changes the entries of all owners for an operator
 * (spec/operator.md#statements).
 */
export class OperatorStatementVerifier {
  readonly #options: OperatorStatementOptions
  readonly #keys: PublishedKeys
  readonly #verified = new RecentMap<string, Claims>(statementsMax)

  constructor(options: OperatorStatementOptions) {
    this.#options = options
    this.#keys = new PublishedKeys(options.gatewayUrl, operatorKeysPath)
  }

  /**
   * @throws ParleyError InvalidToken, TokenExpired, InsufficientPermissions for a statement of another group, Unavailable if
   * the keys of the gateway cannot be fetched
   */
  async verify(statement: string, group: OperatorGroup): Promise<Operator> {
    const name = hash('sha256', statement, 'base64url')
    const known = this.#verified.get(name)
    const verified = known ?? (await this.#read(statement))
    if (verified.exp + toleranceSeconds <= Date.now() / 1000) throw expired()
    if (!this.#options.names().includes(verified.aud))
      throw refused('The operator statement names another agent')
    if (verified.group !== group) {
      throw new ParleyError('InsufficientPermissions', {
        message: `The operator statement is for ${verified.group}, not for ${group}`,
        data: { reason: 'operator_statement' },
      })
    }
    if (isChangingGroup(group)) await this.#take(verified)
    if (known === undefined) this.#verified.set(name, verified)
    const { sub: client, owner, texts } = verified
    return { client, texts, ...(owner !== undefined && { owner }) }
  }

  async #read(statement: string): Promise<Claims> {
    const { kid } = headerOf(statement)
    const keys: Keys = await this.#keys.with(kid)
    try {
      const { payload } = await jwtVerify(statement, keys.keyFor, {
        algorithms: [statementAlgorithm],
        typ: operatorStatementType,
        issuer: keys.issuer,
        requiredClaims: ['iss', 'sub', 'aud', 'jti', 'iat', 'exp'],
        clockTolerance: toleranceSeconds,
      })
      return claimsIn(payload)
    } catch (error) {
      if (error instanceof errors.JWTExpired) throw expired()
      if (error instanceof errors.JOSEError || error instanceof TypeError)
        throw refused('The operator statement is not valid')
      throw error
    }
  }

  async #take({ jti, exp }: Claims): Promise<void> {
    const until = (exp + toleranceSeconds) * 1000
    if (await this.#options.takeOnce(Buffer.from(jti), until)) return
    throw refused('The operator statement has been used before')
  }
}

/** Reads the header without checking the signature. @throws ParleyError InvalidToken for any other token */
function headerOf(token: string): { kid?: string | undefined } {
  try {
    const { typ, kid } = decodeProtectedHeader(token)
    if (typ === operatorStatementType) return { kid }
  } catch {
    // Tokens of other kinds are not JWTs.
  }
  throw refused(
    'This route accepts only operator statements of the gateway. Use the operator API of the gateway',
  )
}

function claimsIn(payload: JWTPayload): Claims {
  const { data } = claims.safeParse(payload)
  if (data === undefined) throw refused('The operator statement is incomplete')
  if (data.exp - data.iat > operatorStatementSeconds)
    throw refused('The operator statement is valid for too long')
  if (data.iat > Date.now() / 1000 + toleranceSeconds)
    throw refused(
      'The operator statement was issued in the future: check the clocks of the gateway and the agent',
    )
  return data
}

const expired = () =>
  new ParleyError('TokenExpired', {
    message: 'The operator statement has expired: check the clocks of the gateway and the agent',
    data: { reason: 'operator_statement' },
  })

const refused = (message: string) =>
  new ParleyError('InvalidToken', { message, data: { reason: 'operator_statement' } })
