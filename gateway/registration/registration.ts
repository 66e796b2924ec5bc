import type { Caller } from '@parley/kit/auth/caller'
import { mayUse } from '@parley/kit/auth/caller'
import { ParleyError } from '@parley/wire/errors'
import type { JsonObject } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import { byOpenRegistry } from '../registry/admission.ts'
import type { AgentEntry } from '../registry/entry.ts'
import { requireDistinct } from '../registry/look-alikes.ts'
import type { Registry } from '../registry/registry.ts'
import { agentAddress } from './agent-address.ts'
import { challengeAgent } from './challenge.ts'
import { type FetchedAgent, type FetchOptions, fetchAgent } from './fetch-agent.ts'
import { refused } from './registration-errors.ts'
import { signedByOneOf } from './signed-request.ts'

export interface RegistrationOptions extends FetchOptions {
  registry: Registry
  /** The gateway's own address; stands in challenges. */
  gatewayUrl: string
  /** Every address of the gateway, and its DID: no agent's. Default: `gatewayUrl`. */
  own?: { addresses: readonly string[]; did: string | undefined }
  /** Who registers may be given work at once. */
  open: boolean
  /** Registrations at the same time. Default 16. */
  underWayMax?: number
  /** Of one client, so that nobody with slow addresses keeps the others out. Default 4. */
  underWayPerCallerMax?: number
  /** Agents of one owner. Default 100. */
  perOwnerMax?: number
}

/** One `POST /registry/agents`, after the checks of token and signature. */
export interface RegistrationRequest {
  url: string
  caller: Caller
  /** As it was signed, where it was. */
  signed: { timestamp: unknown; audience?: unknown; body: Uint8Array }
  /** Which process of the agent it is, where it has several. */
  replicaId?: string
}

/** Registers external agents (spec/gateway-registry.md#registration). */
export class AgentRegistration {
  readonly #options: RegistrationOptions
  /** The clients whose registrations are under way, each as often as it has one. */
  readonly #underWay: string[] = []

  constructor(options: RegistrationOptions) {
    this.#options = options
  }

  /**
   * Fetches card, skills and DID document from the address and makes the entry, or renews that of the same agent.
   * @throws ParleyError InvalidParams, InvalidTokenSignature, Conflict, TooManyRequests, Unavailable
   */
  async join(request: RegistrationRequest): Promise<{ entry: AgentEntry; isNew: boolean }> {
    const { registry, outside, gatewayUrl, own = { addresses: [gatewayUrl], did: undefined } } = this.#options
    const url = agentAddress(request.url, outside.allowed)
    if (own.addresses.some((address) => isAt(url, address)))
      throw refused('gateway', 'The URL is an address of this gateway')
    this.#requireRoom(request.caller)
    const { id } = request.caller
    this.#underWay.push(id)
    try {
      const found = await fetchAgent(url, this.#options)
      if (own.addresses.some((address) => isOf(found.card, address)))
        throw refused('gateway', 'What answers there is this gateway')
      if (found.did !== undefined && found.did === own.did)
        throw refused('gateway', 'The DID on the card is that of this gateway')
      const proof = await this.#proof(request, url, found)
      const began = timestamp()
      const announcement = this.#announcement(request.caller, url, found, proof)
      const works = announcement.admitted || registry.all().some((one) => one.admitted && one.url === url)
      if (works) requireDistinct(announcement, registry.all())
      const entry = await registry.register({
        ...announcement,
        ...(request.replicaId !== undefined && { replicaId: request.replicaId }),
      })
      return { entry, isNew: entry.registeredAt > began }
    } finally {
      this.#underWay.splice(this.#underWay.indexOf(id), 1)
    }
  }

  /** The key that signed the request, or with which a challenge was answered; undefined when none did. */
  async #proof(
    { caller, signed }: RegistrationRequest,
    url: string,
    found: FetchedAgent,
  ): Promise<string | undefined> {
    const { did, identity } = found
    if (did === undefined || identity === undefined) return undefined
    if (caller.did === did) {
      // An OAuth client may have been named after a DID by anybody: the key alone makes it that of the agent.
      const key = signedByOneOf(identity.keys, { did, ...signed, signature: caller.signature })
      if (key !== undefined) return key
      throw notTheAgent(caller.signature === undefined ? 'missing_signature_headers' : 'crypto_mismatch')
    }
    return challengeAgent({ url, did, keys: identity.keys }, this.#options)
  }

  #announcement(caller: Caller, url: string, found: FetchedAgent, proof: string | undefined) {
    const { identity, ...agent } = found
    const operator = mayUse(caller, 'agent:admin')
    return {
      ...agent,
      ...identity,
      ...(proof !== undefined && { keys: inOrder(found, proof) }),
      url,
      owner: caller.id,
      origin: 'registered' as const,
      verified: proof !== undefined,
      admitted: operator || this.#options.open,
      ...((operator || this.#options.open) && { admittedBy: operator ? caller.id : byOpenRegistry }),
    }
  }

  #requireRoom(caller: Caller): void {
    const { registry, perOwnerMax = 100, underWayMax = 16, underWayPerCallerMax = 4 } = this.#options
    if (this.#underWay.length >= underWayMax) throw busy()
    const ofCaller = this.#underWay.filter((id) => id === caller.id).length
    if (ofCaller >= underWayPerCallerMax)
      throw tooMany('busy', `One client may have ${underWayPerCallerMax} registrations under way`, 2)
    if (mayUse(caller, 'agent:admin')) return
    const owned = registry.all().filter(({ owner }) => owner === caller.id).length
    if (owned >= perOwnerMax)
      throw tooMany('agents', `One client may register at most ${perOwnerMax} agents`, 3600)
  }
}

/** Documents of other methods are in no order: there the key of the proof comes last, to be asked for the next time. */
function inOrder({ did, identity }: FetchedAgent, proof: string): string[] {
  const keys = identity?.keys ?? []
  return did?.startsWith('did:parley:') ? keys : [...keys.filter((key) => key !== proof), proof]
}

/** A gateway in its own registry would hand its requests to itself, without end. */
function isAt(url: string, gateway: string): boolean {
  return url === gateway || url.startsWith(`${gateway}/agents/`)
}

/** The gateway's own card, under a name of the gateway that it does not know of. */
function isOf({ url }: JsonObject, gateway: string): boolean {
  return typeof url === 'string' && url.replace(/\/+$/, '') === gateway
}

function notTheAgent(reason: string): ParleyError {
  return new ParleyError('InvalidTokenSignature', {
    message: 'A client that is the DID of the agent signs its registration with the key of that DID',
    data: { reason },
  })
}

function tooMany(reason: string, message: string, retrySeconds: number): ParleyError {
  return new ParleyError('TooManyRequests', {
    message,
    data: { reason },
    headers: { 'retry-after': String(retrySeconds) },
  })
}

function busy(): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'Too many agents are being registered',
    data: { reason: 'busy' },
    headers: { 'retry-after': '2' },
  })
}
