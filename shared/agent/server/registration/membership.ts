import { setTimeout as wait } from 'node:timers/promises'
import { signatureHash } from '@parley/kit/database/signature-hash'
import type { KeyPair } from '@parley/kit/did/keys'
import { signRequest } from '@parley/kit/did/signature'
import { boundedText } from '@parley/kit/net/bounded-text'
import { request } from '@parley/kit/net/http-client'
import type { Log } from '@parley/kit/process/log'
import { heartbeatOut, leavingQuery, registrationOut } from '@parley/wire/codecs/parley/registry'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { Heartbeat } from '@parley/wire/model/registry'

/** Provides bearer tokens, for example a `ClientToken`. */
export interface TokenSource {
  get(): Promise<string>
  /** Called when the gateway has refused the token. */
  forget(): void
}

export interface MembershipOptions {
  gatewayUrl: string
  /** Signs the registration. Its DID identifies the agent. */
  signer: { did: string; key: Pick<KeyPair, 'sign'> }
  tokens: TokenSource
  /** Whether the token's client ID is the agent's DID, so that the first registration is signed. */
  clientIsDid: boolean
  /** False for a supervised agent, which the supervisor registers. */
  registers: boolean
  /** A UUID of this process, if several processes share the agent's identity, tasks and queue. */
  replicaId?: string | undefined
  log: Log
  /** The interval between heartbeats. Default 10 s. */
  everyMs?: number
}

/** The agent's address and load, once it is listening. */
export interface Presence {
  /** The address that clients use. */
  url: string
  figures: () => Heartbeat
}

interface Answer {
  status: number
  json: Record<string, unknown>
}

/** A registry entry contains the agent card. */
const answerMaxBytes = 1024 * 1024
const requestLimitMs = 20_000
const [leaveLimitMs, claimLimitMs] = [3000, 3000]
/** Registry changes reach every gateway process within 2 s. */
const registryDelayMs = 2500

/**
 * Registers an agent with its gateway (spec/gateway-registry.md#registration), sends a heartbeat with load figures
 * every 10 s, registers again if the lease has expired, and removes the entry on disposal. Retries failures; the agent works
 * even without its gateway.
 */
export class Membership implements AsyncDisposable {
  readonly #options: MembershipOptions
  readonly #left = new AbortController()
  #presence: Presence | undefined
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> = Promise.resolve()
  #registered: boolean
  #signs: boolean
  /** The last logged failure, kept so that an outage is logged only once. */
  #failure = ''

  constructor(options: MembershipOptions) {
    this.#options = options
    this.#registered = !options.registers
    this.#signs = options.clientIsDid
  }

  start(presence: Presence): void {
    this.#presence = presence
    // The supervisor must register the agent first.
    this.#next(this.#options.registers ? 0 : 500)
  }

  /**
   * Claims a signed request for this agent (spec/authentication.md#replay). Returns false if another agent has claimed it.
   * @throws ParleyError Unavailable when the gateway does not answer or refuses the claim
   */
  async claimSignature(did: string, signature: Uint8Array): Promise<boolean> {
    const hash = Buffer.from(signatureHash(did, signature)).toString('base64url')
    const path = `${this.#entryPath()}/signatures/${hash}`
    const claim = () => this.#send('PUT', path, undefined, AbortSignal.timeout(claimLimitMs))
    let answer: Answer
    try {
      answer = await claim()
      // The token may have been revoked, so the claim is retried once with a new token.
      if (answer.status === 401) answer = await claim()
    } catch (error) {
      throw cannotClaim('The gateway does not answer', error)
    }
    if (answer.status === 200 || answer.status === 409) return answer.status === 200
    throw cannotClaim(`The gateway refused the claim (${sentenceOf(answer)})`)
  }

  /**
   * Removes the entry of one of several processes before it refuses work, so that no request is routed to it. Resolves when every
   * gateway process has applied the change. Does nothing for an agent with one process, which removes its entry last.
   */
  async leaveFirst(): Promise<void> {
    if (this.#options.replicaId === undefined || !this.#options.registers || !this.#registered) return
    await this.#leave()
    await wait(registryDelayMs)
  }

  /** Removes the entry. If the gateway does not answer, the lease expires. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#leave()
  }

  async #leave(): Promise<void> {
    clearTimeout(this.#timer)
    this.#left.abort()
    await this.#round
    if (!this.#options.registers || !this.#registered) return
    this.#registered = false
    const signal = AbortSignal.timeout(leaveLimitMs)
    await this.#send(
      'DELETE',
      `${this.#entryPath()}${leavingQuery(this.#options.replicaId)}`,
      undefined,
      signal,
    ).catch((error: unknown) => {
      this.#options.log.warn({ err: error }, 'could not remove the entry at the gateway')
    })
  }

  #next(inMs: number): void {
    if (this.#left.signal.aborted) return
    this.#timer = setTimeout(() => {
      this.#round = this.#oneRound().finally(() => this.#next(this.#options.everyMs ?? 10_000))
    }, inMs)
    this.#timer.unref()
  }

  async #oneRound(): Promise<void> {
    try {
      if (!this.#registered) await this.#register()
      if (this.#registered) await this.#beat()
      if (this.#failure !== '') this.#options.log.info('the gateway is reachable again')
      this.#failure = ''
    } catch (error) {
      if (this.#left.signal.aborted) return
      const failure = error instanceof Error ? error.message : String(error)
      if (failure !== this.#failure) this.#options.log.warn({ reason: failure }, 'the gateway call failed')
      this.#failure = failure
    }
  }

  async #register(): Promise<void> {
    const body = registrationOut(this.#presence?.url ?? '', this.#options.replicaId)
    let answer = await this.#send('POST', '/registry/agents', body)
    if (!this.#signs && answer.status === 403 && errorOf(answer).reason === 'missing_signature_headers') {
      this.#signs = true
      answer = await this.#send('POST', '/registry/agents', body)
    }
    if (answer.status >= 300) throw new Error(`the gateway refused the registration: ${sentenceOf(answer)}`)
    this.#registered = true
    const { slug, verified, admitted } = answer.json
    const waits = admitted === true ? '' : '; it receives no work until an operator admits it'
    this.#options.log.info({ slug, verified, admitted }, `registered at the gateway${waits}`)
  }

  async #beat(): Promise<void> {
    const figures = heartbeatOut({ ...this.#presence?.figures(), replicaId: this.#options.replicaId })
    const answer = await this.#send('PUT', `${this.#entryPath()}/heartbeat`, figures)
    if (answer.status === 404 && this.#options.registers) this.#registered = false
    if (answer.status >= 300) throw new Error(`the gateway refused the heartbeat: ${sentenceOf(answer)}`)
  }

  #entryPath(): string {
    return `/registry/agents/${encodeURIComponent(this.#options.signer.did)}`
  }

  async #send(method: 'POST' | 'PUT' | 'DELETE', path: string, given?: object, signal = this.#limit()) {
    const { gatewayUrl, signer, tokens } = this.#options
    const body = given === undefined ? '' : JSON.stringify(given)
    const response = await request(`${gatewayUrl}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${await tokens.get()}`,
        ...(given !== undefined && { 'content-type': 'application/json' }),
        ...(this.#signs && method === 'POST' && signRequest({ ...signer, body })),
      },
      ...(given !== undefined && { body }),
      signal,
    })
    const text = await boundedText(response.body, answerMaxBytes)
    if (response.statusCode === 401) tokens.forget()
    return { status: response.statusCode, json: jsonObjectOf(text) ?? {} }
  }

  #limit(): AbortSignal {
    return AbortSignal.any([this.#left.signal, AbortSignal.timeout(requestLimitMs)])
  }
}

/** If the check cannot run, the request is refused. A signature with this agent's DID as audience needs no claim. */
function cannotClaim(why: string, cause?: unknown): ParleyError {
  return new ParleyError('Unavailable', {
    message: `${why}, so the agent cannot check whether another agent accepted this signed request. Try again later, or set X-DID-Audience to the DID of this agent`,
    data: { reason: 'signature_claim' },
    headers: { 'retry-after': '5' },
    cause,
  })
}

/** Returns the fields of a JSON-RPC error that a log line needs. */
function errorOf({ json }: Answer): Record<'message' | 'reason' | 'issue', unknown> {
  const error = isObject(json['error']) ? json['error'] : {}
  const data = isObject(error['data']) ? error['data'] : {}
  const [issue]: unknown[] = Array.isArray(data['issues']) ? data['issues'] : []
  return { message: error['message'], reason: data['reason'], issue: isObject(issue) && issue['message'] }
}

function sentenceOf(answer: Answer): string {
  const { message, reason, issue } = errorOf(answer)
  const details = [message, reason, issue].filter((detail) => typeof detail === 'string')
  return [`HTTP ${answer.status}`, ...details].join(', ')
}
