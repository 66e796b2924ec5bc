import type { IncomingHttpHeaders } from 'node:http'
import { ParleyError } from '@parley/wire/errors'
import { z } from 'zod'
import { actingAgents, type Caller, delegatedOwner, forwardedBy, mayUse, type Scope } from './caller.ts'
import {
  checkDidSignature,
  expectsSignature,
  type SignatureRules,
  type SignedRequest,
  takeOnce,
} from './did-signature.ts'
import type { ProofRules } from './dpop.ts'
import type { InnerCalls } from './inner-calls.ts'
import { actorsOf, type Introspection, type Introspector } from './introspection.ts'

/** The longest token of a request: a statement that contains a long token of a caller has this many characters. */
export const tokenMaxChars = 12_288

const noBody = new Uint8Array()
const expiringClaims = z.object({ exp: z.number() })

/** The parts of an HTTP request that authentication reads, for example a Fastify request. */
export interface RequestHead {
  headers: IncomingHttpHeaders
  method: string
  /** Path and query as this server received them. */
  url: string
}

/** A caller with the token of its request, which must be neither logged nor handed to the code of an agent. */
export interface AuthenticatedCaller extends Caller {
  credentials: {
    token: string
    /** The response on which the authentication is based. */
    introspection: Introspection
  }
}

export interface AuthenticatorOptions {
  signatures?: SignatureRules | undefined
  /** If absent, tokens that are bound to a key are rejected. */
  proofs?: ProofRules | undefined
  /** If set, tokens without an audience are rejected. Returns the OAuth parameter `resource` for a token for this server. */
  requiredResource?: (() => string) | undefined
  /** The requests that the server sends to itself for callers that it has authenticated. */
  inner?: InnerCalls | undefined
}

/** A resource of this server that has separate tokens, for example its MCP endpoint. */
export interface TokenRecipient {
  /** The names by which a token's audience may name it, in addition to the server's. The first is the OAuth parameter `resource`. */
  names: readonly [resource: string, ...others: string[]]
  /** Whether tokens without an audience are rejected. */
  requiresAudience: boolean
}

export class Authenticator {
  readonly introspector: Introspector
  readonly signatures: SignatureRules
  /** Addresses and DIDs by which a token's audience may name this server. */
  readonly #audiences: () => readonly string[]
  readonly #proofs: ProofRules | undefined
  readonly #requiredResource: (() => string) | undefined
  readonly #inner: InnerCalls | undefined
  /** The checks of proofs by request, because a request that is identified more than once has a single proof. */
  readonly #proofOf = new WeakMap<RequestHead, { token: string; checked: Promise<void> }>()

  /** @param audiences addresses and DIDs of this server; a DPoP proof names one of the addresses */
  constructor(
    introspector: Introspector,
    audiences: () => readonly string[],
    { signatures = {}, proofs, requiredResource, inner }: AuthenticatorOptions = {},
  ) {
    this.introspector = introspector
    this.signatures = signatures
    this.#audiences = audiences
    this.#proofs = proofs
    this.#requiredResource = requiredResource
    this.#inner = inner
  }

  /**
   * Runs the checks in the specified order (spec/authentication.md#order-of-checks).
   * @param body the raw bytes that a signature covers; empty for a GET
   * @throws ParleyError AuthenticationRequired, InvalidToken, TokenExpired, InvalidTokenSignature, Unavailable
   */
  authenticate(request: RequestHead, body: Uint8Array = noBody): Promise<AuthenticatedCaller> {
    return this.#authenticate(request, body)
  }

  /**
   * Authenticates a request for a resource of this server (spec/authentication.md#protected-resources). A token for the resource
   * is accepted only here, and a token for the whole server here too.
   * @throws ParleyError as `authenticate`
   */
  authenticateAt(
    recipient: TokenRecipient,
    request: RequestHead,
    body: Uint8Array = noBody,
  ): Promise<AuthenticatedCaller> {
    return this.#authenticate(request, body, recipient)
  }

  async #authenticate(
    request: RequestHead,
    body: Uint8Array,
    recipient?: TokenRecipient,
  ): Promise<AuthenticatedCaller> {
    const caller = await this.identify(request)
    this.#requireAudience(caller.credentials.introspection, recipient)
    // A signature covers the outer request.
    if (caller === this.#inner?.callerOf(request)) return caller
    const signed = this.#signedRequest(caller, request.headers, body)
    if (!expectsSignature(signed, this.signatures)) return caller
    const { signature, audience } = await checkDidSignature(signed, this.signatures)
    return { ...caller, signature, ...(audience !== undefined && { signedAudience: audience }) }
  }

  /**
   * Returns the token's caller without checking the audience or a signature. A proxy uses this to decide whether to
   * exchange the token for another server. A DPoP proof is checked, because it names the proxy.
   * @throws ParleyError AuthenticationRequired, InvalidToken, TokenExpired, Unavailable
   */
  async identify(request: RequestHead): Promise<AuthenticatedCaller> {
    const known = this.#inner?.callerOf(request)
    if (known !== undefined) return known
    const { isProven, token } = requireToken(request.headers)
    const introspection = await this.introspector.introspect(token)
    requireActive(introspection, token)
    if (introspection.cnf !== undefined)
      await this.#requireProof({ request, isProven, token, jkt: introspection.cnf.jkt })
    else if (isProven)
      throw refused('InvalidToken', 'The token is not bound to a key: send it as Authorization: Bearer')
    return callerOf(token, introspection)
  }

  /**
   * Accepts a required signature once (spec/authentication.md#replay). Methods that write call it after all other
   * checks.
   * @throws ParleyError InvalidTokenSignature `replayed`, Unavailable
   */
  async takeOnce({ id, signature, signedAudience }: Caller): Promise<void> {
    const { required } = this.signatures
    if (required === undefined || signature === undefined) return
    await takeOnce(id, { signature, ...(signedAudience && { audience: signedAudience }) }, required)
  }

  names(audience: string): boolean {
    return this.#audiences().some((name) => isSameName(name, audience))
  }

  /** A token that is bound to a key is accepted only with a proof of that key (RFC 9449, section 7). */
  async #requireProof({ request, isProven, token, jkt }: BoundToken): Promise<void> {
    if (jkt === undefined || this.#proofs === undefined)
      throw refused('InvalidToken', 'The token is bound to a key in a way that this server does not support')
    const { checkProof, sentAsBearer } = await import('./dpop.ts')
    if (!isProven) throw sentAsBearer()
    const found = this.#proofOf.get(request)
    if (found?.token === token) return found.checked
    const { headers, method, url } = request
    const checked = checkProof({ headers, method, url, token, jkt }, this.#proofs)
    this.#proofOf.set(request, { token, checked })
    return checked
  }

  /** RFC 8707: a token with an audience is accepted only by a server that it names. */
  #requireAudience({ aud }: Introspection, recipient?: TokenRecipient): void {
    const audience = [aud ?? []].flat()
    const isNamed = (name: string) =>
      this.names(name) || recipient?.names.some((own) => isSameName(own, name)) === true
    if (audience.length > 0 && !audience.some(isNamed))
      throw refused('InvalidToken', 'The token is for another audience')
    if (audience.length > 0) return
    if (recipient?.requiresAudience) throw withoutAudience(recipient.names[0])
    if (this.#requiredResource !== undefined) throw withoutAudience(this.#requiredResource())
  }

  /**
   * A signed audience may also name the gateway that forwarded the request. The token states which one it was, and no
   * other server accepts the token, so the request cannot be sent to another server.
   */
  #signedRequest(caller: AuthenticatedCaller, headers: IncomingHttpHeaders, body: Uint8Array): SignedRequest {
    const gateway = forwardedBy(caller)
    const names = (audience: string) =>
      this.names(audience) || (gateway !== undefined && isSameName(audience, gateway))
    const clientId = caller.delegate ?? caller.credentials.introspection.client_id ?? ''
    return { headers, body, clientId, names }
  }
}

/** @throws ParleyError InsufficientPermissions */
export function requireScope(caller: Caller, scope: Scope): void {
  if (!mayUse(caller, scope)) throw insufficientScope(scope)
}

export function insufficientScope(required: Scope): ParleyError {
  return new ParleyError('InsufficientPermissions', {
    data: { reason: 'scope', required },
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${required}"` },
  })
}

/**
 * Rejects an agent that acts for a client. Its token covers messages and the tasks created with it, and nothing else
 * (spec/authentication.md#delegated-tokens).
 * @throws ParleyError InsufficientPermissions
 */
export function requireNoDelegate({ delegate }: Caller): void {
  if (delegate === undefined) return
  throw new ParleyError('InsufficientPermissions', {
    message:
      'This token lets an agent act for a client, for messages and tasks only: send the request with a token of your own client',
    data: { reason: 'delegated_token' },
  })
}

interface BoundToken {
  request: RequestHead
  /** Whether the request uses the scheme `DPoP`. */
  isProven: boolean
  token: string
  /** The thumbprint of the key. Undefined if the token is bound in another way. */
  jkt: string | undefined
}

function requireToken({ authorization = '' }: IncomingHttpHeaders): Pick<BoundToken, 'isProven' | 'token'> {
  const [, scheme, token] = /^(bearer|dpop) +([\w.~+/-]+=*)$/i.exec(authorization) ?? []
  if (scheme === undefined || token === undefined || token.length > tokenMaxChars) {
    throw new ParleyError('AuthenticationRequired', { headers: { 'www-authenticate': 'Bearer' } })
  }
  return { isProven: scheme.toLowerCase() === 'dpop', token }
}

function requireActive({ active, exp }: Introspection, token: string): void {
  const expiry = exp ?? (active ? undefined : jwtExpiry(token))
  if (expiry !== undefined && expiry * 1000 <= Date.now())
    throw refused('TokenExpired', 'The token has expired')
  if (!active) throw refused('InvalidToken', 'The token is not active')
}

/** The callers of frozen introspection responses, which are cached. */
const cachedCallers = new WeakMap<Introspection, Readonly<AuthenticatedCaller>>()

function callerOf(token: string, introspection: Introspection): AuthenticatedCaller {
  const cached = cachedCallers.get(introspection)
  if (cached?.credentials.token === token) return cached
  const caller = { ...requireCaller(introspection), credentials: { token, introspection } }
  if (Object.isFrozen(introspection)) cachedCallers.set(introspection, Object.freeze(caller))
  return caller
}

function requireCaller({ client_id, sub, scope, aud, act, gateways }: Introspection): Caller {
  const subject = client_id ?? sub
  if (subject === undefined) throw refused('InvalidToken', 'The token has no client')
  const caller: Caller = { id: subject, subject, scopes: new Set(scope?.split(' ') ?? []) }
  if (act !== undefined) {
    caller.actors = actorsOf(act)
    if (gateways !== undefined) caller.gateways = gateways
    // Gateways forward requests and do not act on their own.
    const [delegate] = actingAgents(caller)
    if (delegate !== undefined) {
      caller.delegate = delegate
      caller.id = delegatedOwner(subject, delegate)
    }
  }
  const sender = caller.delegate ?? subject
  if (sender.startsWith('did:')) caller.did = sender
  if (aud !== undefined) caller.audience = [aud].flat()
  return caller
}

function isSameName(one: string, other: string): boolean {
  return one === other || one.replace(/\/+$/, '') === other.replace(/\/+$/, '')
}

function withoutAudience(resource: string): ParleyError {
  return refused(
    'InvalidToken',
    `This server accepts only tokens for it: request one with the OAuth parameter resource=${resource}, or send the request through the gateway`,
  )
}

function refused(error: 'InvalidToken' | 'TokenExpired', description: string): ParleyError {
  return new ParleyError(error, {
    message: description,
    headers: { 'www-authenticate': `Bearer error="invalid_token", error_description="${description}"` },
  })
}

/**
 * The unverified `exp` of a token that looks like a JWT. It only distinguishes "expired" from "not active" in the
 * error for a token that the provider has already rejected.
 */
function jwtExpiry(token: string): number | undefined {
  const payload = token.split('.')[1]
  if (payload === undefined) return undefined
  try {
    return expiringClaims.safeParse(JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'))).data?.exp
  } catch {
    return undefined
  }
}
