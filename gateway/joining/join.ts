import type { Caller } from '../../shared/auth/caller.ts'
import { mayUse } from '../../shared/auth/caller.ts'
import { ParleyError } from '../../shared/jsonrpc/errors.ts'
import { timestamp } from '../../shared/protocol/timestamp.ts'
import { byOpenRegistry } from '../registry/admission.ts'
import type { AgentEntry } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'
import { agentAddress } from './agent-address.ts'
import { challengeAgent } from './challenge.ts'
import { type FetchedAgent, type FetchOptions, fetchAgent } from './fetch-agent.ts'
import { signedByOneOf } from './signed-request.ts'

export interface JoiningOptions extends FetchOptions {
  registry: Registry
  /** The gateway's own address; stands in challenges. */
  gatewayUrl: string
  /** Who registers may be given work at once. */
  open: boolean
  /** Registrations at the same time. Default 16. */
  underWayMax?: number
  /** Agents of one owner. Default 100. */
  perOwnerMax?: number
}

/** One `POST /registry/agents`, after the checks of token and signature. */
export interface JoinRequest {
  url: string
  caller: Caller
  /** As it was signed, where it was. */
  signed: { timestamp: unknown; body: Uint8Array }
}

/** Agents from outside come into the registry (design gaps, "Registry"). */
export class Joining {
  readonly #options: JoiningOptions
  #underWay = 0

  constructor(options: JoiningOptions) {
    this.#options = options
  }

  /**
   * Fetches card, skills and DID document from the address and makes the entry, or renews that of the same agent.
   * @throws ParleyError InvalidParams, InvalidTokenSignature, Conflict, TooManyRequests, Unavailable
   */
  async join(request: JoinRequest): Promise<{ entry: AgentEntry; isNew: boolean }> {
    const { registry, outside, underWayMax = 16 } = this.#options
    const url = agentAddress(request.url, outside.allowed)
    this.#requireRoom(request.caller)
    if (this.#underWay >= underWayMax) throw busy()
    this.#underWay += 1
    try {
      const found = await fetchAgent(url, this.#options)
      const proof = await this.#proof(request, url, found)
      const began = timestamp()
      const entry = await registry.register(this.#announcement(request.caller, url, found, proof))
      return { entry, isNew: entry.registeredAt > began }
    } finally {
      this.#underWay -= 1
    }
  }

  /** The key that signed the request, or with which a challenge was answered; undefined when none did. */
  async #proof(
    { caller, signed }: JoinRequest,
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
    const { registry, perOwnerMax = 100 } = this.#options
    if (mayUse(caller, 'agent:admin')) return
    const owned = registry.all().filter(({ owner }) => owner === caller.id).length
    if (owned >= perOwnerMax) {
      throw new ParleyError('TooManyRequests', {
        message: `One client may register at most ${perOwnerMax} agents`,
        data: { reason: 'agents' },
        headers: { 'retry-after': '3600' },
      })
    }
  }
}

/** Documents of other methods are in no order: there the key of the proof comes last, to be asked for the next time. */
function inOrder({ did, identity }: FetchedAgent, proof: string): string[] {
  const keys = identity?.keys ?? []
  return did?.startsWith('did:parley:') ? keys : [...keys.filter((key) => key !== proof), proof]
}

function notTheAgent(reason: string): ParleyError {
  return new ParleyError('InvalidTokenSignature', {
    message: 'A client that is the DID of the agent signs its registration with the key of that DID',
    data: { reason },
  })
}

function busy(): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'Too many agents are being registered',
    data: { reason: 'busy' },
    headers: { 'retry-after': '2' },
  })
}
