import type { IncomingHttpHeaders } from 'node:http'
import { ParleyError } from '@parley/wire/errors'
import { type Caller, mayUse, type Scope } from './caller.ts'
import { checkDidSignature, type SignatureRules, takeOnce } from './did-signature.ts'
import type { Introspection, Introspector } from './introspection.ts'
import { jwtExpiry } from './jwt-expiry.ts'

/** What the checks look at and find out, in order. */
interface Attempt {
  headers: IncomingHttpHeaders
  body: Uint8Array
  token: string
  introspection: Introspection
  caller: Caller
}

type Check = (attempt: Partial<Attempt>, authenticator: Authenticator) => void | Promise<void>

/** The checks, in the order in which they may refuse (spec/authentication.md#order-of-checks). */
const checks: Check[] = [
  tokenIsPresent,
  introspect,
  tokenIsActive,
  tokenIsForUs,
  callerIsNamed,
  signatureIsTheCallers,
]

/** The owner and the scopes of a token, whatever its audience. */
const identification: Check[] = [tokenIsPresent, introspect, tokenIsActive, callerIsNamed]

const noBody = new Uint8Array()

export class Authenticator {
  readonly introspector: Introspector
  readonly signatures: SignatureRules
  /** Addresses by which a token's audience may name this server. Undefined = not known yet. */
  readonly #audiences: () => readonly string[]

  constructor(
    introspector: Introspector,
    audiences: () => readonly string[],
    signatures: SignatureRules = {},
  ) {
    this.introspector = introspector
    this.signatures = signatures
    this.#audiences = audiences
  }

  /**
   * @param body the raw bytes, which a signature is over; none for a GET
   * @throws ParleyError AuthenticationRequired, InvalidToken, TokenExpired, InvalidTokenSignature, Unavailable
   */
  async authenticate(headers: IncomingHttpHeaders, body: Uint8Array = noBody): Promise<Caller> {
    const attempt: Partial<Attempt> = { headers, body }
    for (const check of checks) await check(attempt, this)
    return (attempt as Attempt).caller
  }

  /**
   * The caller that the token names. Checks neither the audience nor a signature: for a proxy that decides whether the
   * token may be forwarded to another server.
   * @throws ParleyError AuthenticationRequired, InvalidToken, TokenExpired, Unavailable
   */
  async identify(headers: IncomingHttpHeaders): Promise<Caller> {
    const attempt: Partial<Attempt> = { headers, body: noBody }
    for (const check of identification) await check(attempt, this)
    return (attempt as Attempt).caller
  }

  /**
   * For methods that write, after all other checks: required signatures are accepted once (spec/authentication.md#replay).
   * @throws ParleyError InvalidTokenSignature `replayed`, Unavailable
   */
  async takeOnce({ id, signature, signedAudience }: Caller): Promise<void> {
    const { required } = this.signatures
    if (required === undefined || signature === undefined) return
    await takeOnce(id, { signature, ...(signedAudience && { audience: signedAudience }) }, required)
  }

  names(audience: string): boolean {
    return this.#audiences().includes(audience.replace(/\/+$/, ''))
  }
}

/** @throws ParleyError InsufficientPermissions */
export function requireScope(caller: Caller, scope: Scope): void {
  if (mayUse(caller, scope)) return
  throw new ParleyError('InsufficientPermissions', {
    data: { reason: 'scope', required: scope },
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scope}"` },
  })
}

function tokenIsPresent(attempt: Partial<Attempt>): void {
  const token = /^bearer +([\w.~+/-]+=*)$/i.exec(attempt.headers?.authorization ?? '')?.[1]
  if (token === undefined || token.length > 8192) {
    throw new ParleyError('AuthenticationRequired', { headers: { 'www-authenticate': 'Bearer' } })
  }
  attempt.token = token
}

async function introspect(attempt: Partial<Attempt>, { introspector }: Authenticator): Promise<void> {
  attempt.introspection = await introspector.introspect(attempt.token as string)
}

function tokenIsActive(attempt: Partial<Attempt>): void {
  const { active, exp } = attempt.introspection as Introspection
  const expiry = exp ?? (active ? undefined : jwtExpiry(attempt.token as string))
  if (expiry !== undefined && expiry * 1000 <= Date.now())
    throw refused('TokenExpired', 'The token has expired')
  if (!active) throw refused('InvalidToken', 'The token is not active')
}

/** RFC 8707: a token with an audience is accepted only by a server that it names. */
function tokenIsForUs(attempt: Partial<Attempt>, authenticator: Authenticator): void {
  const audience = [attempt.introspection?.aud ?? []].flat()
  if (audience.length > 0 && !audience.some((name) => authenticator.names(name))) {
    throw refused('InvalidToken', 'The token is for another audience')
  }
}

function callerIsNamed(attempt: Partial<Attempt>): void {
  const { client_id, sub, scope, aud } = attempt.introspection as Introspection
  const id = client_id ?? sub
  if (id === undefined) throw refused('InvalidToken', 'The token names no client')
  const caller: Caller = { id, scopes: new Set(scope?.split(' ') ?? []) }
  if (id.startsWith('did:')) caller.did = id
  if (aud !== undefined) caller.audience = [aud].flat()
  attempt.caller = caller
}

async function signatureIsTheCallers(attempt: Partial<Attempt>, authenticator: Authenticator): Promise<void> {
  const { headers, body, introspection, caller } = attempt as Attempt
  const clientId = introspection.client_id ?? ''
  const names = (audience: string) => authenticator.names(audience)
  const checked = await checkDidSignature({ headers, body, clientId, names }, authenticator.signatures)
  if (checked === undefined) return
  caller.signature = checked.signature
  if (checked.audience !== undefined) caller.signedAudience = checked.audience
}

function refused(error: 'InvalidToken' | 'TokenExpired', description: string): ParleyError {
  return new ParleyError(error, {
    message: description,
    headers: { 'www-authenticate': `Bearer error="invalid_token", error_description="${description}"` },
  })
}
