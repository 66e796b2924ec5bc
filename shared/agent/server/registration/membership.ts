import { setTimeout as wait } from 'node:timers/promises'
import { signatureHash } from '@parley/kit/database/signature-hash'
import type { KeyPair } from '@parley/kit/did/keys'
import { signRequest } from '@parley/kit/did/signature'
import { boundedText } from '@parley/kit/net/bounded-text'
import type { Log } from '@parley/kit/process/log'
import { heartbeatOut, leavingQuery, registrationOut } from '@parley/wire/codecs/parley/registry'
import { ParleyError } from '@parley/wire/errors'
import { jsonObjectOf } from '@parley/wire/model/json-text'
import type { Heartbeat } from '@parley/wire/model/registry'
import { request } from 'undici'

/** Where the bearer token comes from; a `ClientToken` is one. */
export interface TokenSource {
  get(): Promise<string>
  /** The gateway refused it. */
  forget(): void
}

export interface MembershipOptions {
  gatewayUrl: string
  /** Signs the registration; its DID names the agent. */
  signer: { did: string; key: Pick<KeyPair, 'sign'> }
  tokens: TokenSource
  /** The token's client is the agent's DID: the registration is signed at once. */
  clientIsDid: boolean
  /** False under a supervisor, which enters its agents by itself. */
  registers: boolean
  /** A UUID of this process, where the agent has several that share identity, tasks and line. */
  replicaId?: string | undefined
  log: Log
  /** Default 10 s. */
  everyMs?: number
}

/** Of the agent, once it listens. */
export interface Presence {
  /** The address that others use. */
  url: string
  figures: () => Heartbeat
}

interface Answer {
  status: number
  json: Record<string, unknown>
}

/** An entry of the registry holds the agent's card. */
const answerMaxBytes = 1024 * 1024
const requestLimitMs = 20_000
const [leaveLimitMs, claimLimitMs] = [3000, 3000]
/** A gateway knows within 2 s what another one was told. */
const gatewaysHearWithinMs = 2500

/**
 * An agent at its gateway: registers, tells every 10 s that it lives and how busy it is, comes back when the gateway has
 * forgotten it, and leaves when it is disposed. A gateway that is away is tried again; the agent works without it.
 */
export class Membership implements AsyncDisposable {
  readonly #options: MembershipOptions
  readonly #left = new AbortController()
  #presence: Presence | undefined
  #timer: NodeJS.Timeout | undefined
  #round: Promise<void> = Promise.resolve()
  #registered: boolean
  #signs: boolean
  /** Once per outage: a gateway that is away for an hour is one line, not three hundred. */
  #trouble = ''

  constructor(options: MembershipOptions) {
    this.#options = options
    this.#registered = !options.registers
    this.#signs = options.clientIsDid
  }

  start(presence: Presence): void {
    this.#presence = presence
    // A supervisor has to enter the agent first.
    this.#next(this.#options.registers ? 0 : 500)
  }

  /**
   * Claims a signed request for this agent among all agents of the gateway; false when another one has it.
   * @throws ParleyError Unavailable when the gateway does not answer, or does not let this agent claim
   */
  async claimSignature(did: string, signature: Uint8Array): Promise<boolean> {
    const hash = Buffer.from(signatureHash(did, signature)).toString('base64url')
    const path = `${this.#entryPath()}/signatures/${hash}`
    const claim = () => this.#ask('PUT', path, undefined, AbortSignal.timeout(claimLimitMs))
    let answer: Answer
    try {
      answer = await claim()
      // The token may have been revoked: one more try with a new one.
      if (answer.status === 401) answer = await claim()
    } catch (error) {
      throw cannotClaim('The gateway does not answer', error)
    }
    if (answer.status === 200 || answer.status === 409) return answer.status === 200
    throw cannotClaim(`The gateway refused the claim (${sentenceOf(answer)})`)
  }

  /**
   * One of several processes leaves before it stops taking work, so that nobody is sent to it who would be refused: resolves
   * when every gateway knows. Of an agent that is one process the gateway hears last.
   */
  async leaveFirst(): Promise<void> {
    if (this.#options.replicaId === undefined || !this.#options.registers || !this.#registered) return
    await this.#leave()
    await wait(gatewaysHearWithinMs)
  }

  /** Leaves: a gateway that does not answer finds out by itself. */
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
    await this.#ask(
      'DELETE',
      `${this.#entryPath()}${leavingQuery(this.#options.replicaId)}`,
      undefined,
      signal,
    ).catch((error: unknown) => {
      this.#options.log.warn({ err: error }, 'could not leave the gateway')
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
      if (this.#trouble !== '') this.#options.log.info('the gateway is reached again')
      this.#trouble = ''
    } catch (error) {
      if (this.#left.signal.aborted) return
      const trouble = (error as Error).message
      if (trouble !== this.#trouble) this.#options.log.warn({ reason: trouble }, 'trouble with the gateway')
      this.#trouble = trouble
    }
  }

  async #register(): Promise<void> {
    const body = registrationOut(this.#presence?.url ?? '', this.#options.replicaId)
    let answer = await this.#ask('POST', '/registry/agents', body)
    if (!this.#signs && answer.status === 403 && reasonOf(answer) === 'missing_signature_headers') {
      this.#signs = true
      answer = await this.#ask('POST', '/registry/agents', body)
    }
    if (answer.status >= 300) throw new Error(`the gateway refused the registration: ${sentenceOf(answer)}`)
    this.#registered = true
    const { slug, verified, admitted } = answer.json
    const waits = admitted === true ? '' : '; it gets no work before an operator admits it'
    this.#options.log.info({ slug, verified, admitted }, `registered at the gateway${waits}`)
  }

  async #beat(): Promise<void> {
    const figures = heartbeatOut({ ...this.#presence?.figures(), replicaId: this.#options.replicaId })
    const answer = await this.#ask('PUT', `${this.#entryPath()}/heartbeat`, figures)
    if (answer.status === 404 && this.#options.registers) this.#registered = false
    if (answer.status >= 300) throw new Error(`the gateway refused the heartbeat: ${sentenceOf(answer)}`)
  }

  #entryPath(): string {
    return `/registry/agents/${encodeURIComponent(this.#options.signer.did)}`
  }

  async #ask(method: 'POST' | 'PUT' | 'DELETE', path: string, given?: object, signal = this.#limit()) {
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

/** A check that cannot run is a refusal. A signature with the audience of this agent alone needs no claim. */
function cannotClaim(why: string, cause?: unknown): ParleyError {
  return new ParleyError('Unavailable', {
    message: `${why}, so whether another agent took this signed request cannot be checked. Try again later, or sign X-DID-Audience with the DID of this agent`,
    data: { reason: 'signature_claim' },
    headers: { 'retry-after': '5' },
    cause,
  })
}

interface Envelope {
  message?: unknown
  data?: { reason?: unknown; issues?: { message?: unknown }[] }
}

function reasonOf({ json }: Answer): unknown {
  return (json['error'] as Envelope | undefined)?.data?.reason
}

function sentenceOf({ status, json }: Answer): string {
  const { message, data } = (json['error'] ?? {}) as Envelope
  const said = [message, data?.reason, data?.issues?.[0]?.message].filter((one) => typeof one === 'string')
  return [`HTTP ${status}`, ...said].join(', ')
}
