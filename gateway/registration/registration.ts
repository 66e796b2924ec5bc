import { isDeepStrictEqual } from 'node:util'
import type { AgentCredential } from '@parley/kit/auth/agent-credential'
import { type Caller, mayUse } from '@parley/kit/auth/caller'
import type { AllowedHosts } from '@parley/kit/net/allowed-hosts'
import { outgoingUrl } from '@parley/kit/net/outgoing-url'
import { ParleyError } from '@parley/wire/errors'
import type { JsonObject } from '@parley/wire/model/task'
import { timestamp } from '@parley/wire/model/timestamp'
import { byOpenRegistry } from '../registry/admission.ts'
import type { AgentEntry } from '../registry/entry.ts'
import { requireDistinct } from '../registry/look-alikes.ts'
import type { Registry } from '../registry/registry.ts'
import { type FetchedAgent, type FetchOptions, fetchAgent } from './fetch-agent.ts'
import { fetchMcpServer, mcpDialect } from './fetch-mcp-server.ts'
import { challengeAgent, findSigningKey } from './key-proof.ts'
import { registrationError, toRegistrationError } from './registration-errors.ts'

export interface RegistrationOptions extends FetchOptions {
  registry: Registry
  /** Public URL of the gateway, which is part of each challenge. */
  gatewayUrl: string
  /** URLs and DID of the gateway, which no agent may use. Defaults to `gatewayUrl` without a DID. */
  own?: { addresses: readonly string[]; did: string | undefined }
  /** Whether agents are admitted without the approval of an operator. */
  open: boolean
  /** Maximum number of concurrent registrations. Defaults to 16. */
  concurrentMax?: number
  /** Maximum per client, so that one client's slow addresses do not block other clients. Defaults to 4. */
  concurrentPerCallerMax?: number
  /** Maximum number of agents per owner. Defaults to 100. */
  perOwnerMax?: number
  /** Returns the credential with which an MCP server is read again. */
  credentialOf?: (entry: AgentEntry) => AgentCredential | undefined
}

/** An authenticated `POST /registry/agents`. */
export interface RegistrationRequest {
  url: string
  /** Whether the address is that of an MCP server. */
  isMcp?: boolean
  /** The name of an MCP server in the registry. Default: the name that it states. */
  name?: string | undefined
  caller: Caller
  /** The parts of the request that a DID signature covers. */
  signed: { timestamp: unknown; audience?: unknown; body: Uint8Array }
  /** Id of the registering process if the agent runs in several. */
  replicaId?: string
  /** Whether the caller may see the agent with this slug. Errors name no other agent. By default, all are visible. */
  isVisible?: (slug: string) => boolean
}

/** Registers external agents (spec/gateway-registry.md#registration). */
export class AgentRegistration {
  readonly #options: RegistrationOptions
  /** Client ids of the registrations in progress, which may include duplicates. */
  readonly #inProgress: string[] = []

  constructor(options: RegistrationOptions) {
    this.#options = options
  }

  /**
   * Reads the card, skills and DID document from the address. Creates an entry or renews the agent's existing one.
   * @throws ParleyError InvalidParams, InvalidTokenSignature, Conflict, TooManyRequests, Unavailable
   */
  async register(request: RegistrationRequest): Promise<{ entry: AgentEntry; isNew: boolean }> {
    const { registry, client, gatewayUrl, own = { addresses: [gatewayUrl], did: undefined } } = this.#options
    const { url, endpoint } = agentAddress(request, client.allowed)
    if (own.addresses.some((address) => isGatewayAddress(url, address)))
      throw registrationError('gateway', 'The URL is an address of this gateway')
    this.#checkLimits(request.caller)
    const { id } = request.caller
    this.#inProgress.push(id)
    try {
      const found = await (request.isMcp === true
        ? fetchMcpServer(endpoint, { ...this.#readingOf(url), name: request.name })
        : fetchAgent(url, this.#options))
      if (own.addresses.some((address) => isGatewayCard(found.card, address)))
        throw registrationError('gateway', 'The URL leads to this gateway')
      this.#requireForeign(found)
      if (found.did !== undefined && found.did === own.did)
        throw registrationError('gateway', 'The DID on the card is that of this gateway')
      const proof = await this.#proof(request, url, found)
      const began = timestamp()
      const announcement = this.#announcementFor(request.caller, url, found, proof)
      const works = announcement.admitted || registry.all().some((one) => one.admitted && one.url === url)
      if (works) requireDistinct(announcement, registry.all(), request.isVisible)
      const entry = await registry.register({
        ...announcement,
        ...(request.replicaId !== undefined && { replicaId: request.replicaId }),
      })
      return { entry, isNew: entry.registeredAt > began }
    } finally {
      this.#inProgress.splice(this.#inProgress.indexOf(id), 1)
    }
  }

  /**
   * Reads the card of a foreign agent again. The rules are those of a registration by its owner.
   * @returns undefined if there is no such foreign agent
   * @throws ParleyError InvalidParams, Conflict
   */
  async renew(id: string): Promise<AgentEntry | undefined> {
    const { registry, open } = this.#options
    const known = registry.find(id)
    if (known?.relay === undefined) return undefined
    const { dialect, url } = known.relay
    const { identity: _, ...found } = await (dialect === mcpDialect
      ? fetchMcpServer(url, this.#readingOf(known.url))
      : fetchAgent(known.url, this.#options))
    if (found.relay === undefined)
      throw registrationError('card', 'The card is no longer that of a foreign A2A agent: register it again')
    this.#requireForeign(found)
    // Servers are read at each probe, and most have not changed.
    if (dialect === mcpDialect && isDeepStrictEqual(found.card, known.card)) return known
    const announcement = {
      ...found,
      url: known.url,
      owner: known.owner,
      origin: known.origin,
      verified: found.cardSignature?.verified === true,
      admitted: open,
      ...(open && { admittedBy: byOpenRegistry }),
    }
    if (known.admitted) requireDistinct(announcement, registry.all())
    return registry.register({ ...announcement, renews: id })
  }

  /** Returns how an MCP server is read, which may be known by its address. */
  #readingOf(url: string) {
    const { client, registry, credentialOf } = this.#options
    const known = registry.all().find((one) => one.url === url && one.relay?.dialect === mcpDialect)
    return { client, known, credential: known && credentialOf?.(known) }
  }

  /** The relay must not call the gateway, which would forward the call to the relay. */
  #requireForeign({ relay }: Pick<FetchedAgent, 'relay'>): void {
    const { gatewayUrl, own = { addresses: [gatewayUrl] } } = this.#options
    if (relay === undefined) return
    if (own.addresses.some((address) => relay.url === address || relay.url.startsWith(`${address}/`)))
      throw registrationError('gateway', 'The agent is called at an address of this gateway')
  }

  /** Returns the key that signed the request or the challenge, or undefined if there is no proof. */
  async #proof(
    { caller, signed }: RegistrationRequest,
    url: string,
    found: FetchedAgent,
  ): Promise<string | undefined> {
    const { did, identity } = found
    if (did === undefined || identity === undefined) return undefined
    if (caller.did === did) {
      // Anyone may name an OAuth client after a DID, and only the key proves that it owns the DID.
      const key = findSigningKey(identity.keys, { did, ...signed, signature: caller.signature })
      if (key !== undefined) return key
      throw wrongSignatureError(
        caller.signature === undefined ? 'missing_signature_headers' : 'crypto_mismatch',
      )
    }
    return challengeAgent({ url, did, keys: identity.keys }, this.#options)
  }

  #announcementFor(caller: Caller, url: string, found: FetchedAgent, proof: string | undefined) {
    const { identity, ...agent } = found
    const operator = mayUse(caller, 'agent:admin')
    return {
      ...agent,
      ...identity,
      ...(proof !== undefined && { keys: keysWithProofLast(found, proof) }),
      url,
      owner: caller.id,
      origin: 'registered' as const,
      verified: proof !== undefined || found.cardSignature?.verified === true,
      admitted: operator || this.#options.open,
      ...((operator || this.#options.open) && { admittedBy: operator ? caller.id : byOpenRegistry }),
    }
  }

  #checkLimits(caller: Caller): void {
    const { registry, perOwnerMax = 100, concurrentMax = 16, concurrentPerCallerMax = 4 } = this.#options
    if (this.#inProgress.length >= concurrentMax) throw busyError()
    const ofCaller = this.#inProgress.filter((id) => id === caller.id).length
    if (ofCaller >= concurrentPerCallerMax)
      throw tooManyError(
        'busy',
        `One client may have at most ${concurrentPerCallerMax} registrations in progress`,
        2,
      )
    if (mayUse(caller, 'agent:admin')) return
    const owned = registry.all().filter(({ owner }) => owner === caller.id).length
    if (owned >= perOwnerMax)
      throw tooManyError('agents', `One client may register at most ${perOwnerMax} agents`, 3600)
  }
}

/**
 * Puts the proven key last, where the next registration expects it. Documents of other methods do not order their keys.
 */
function keysWithProofLast({ did, identity }: FetchedAgent, proof: string): string[] {
  const keys = identity?.keys ?? []
  return did?.startsWith('did:parley:') ? keys : [...keys.filter((key) => key !== proof), proof]
}

/** Detects the gateway's own address. A gateway in its own registry would forward requests to itself endlessly. */
function isGatewayAddress(url: string, gateway: string): boolean {
  return url === gateway || url.startsWith(`${gateway}/agents/`)
}

/** Detects the gateway's own card at an unknown host name. */
function isGatewayCard({ url }: JsonObject, gateway: string): boolean {
  return typeof url === 'string' && url.replace(/\/+$/, '') === gateway
}

function wrongSignatureError(reason: string): ParleyError {
  return new ParleyError('InvalidTokenSignature', {
    message: 'A client named after the DID of the agent must sign the registration with the key of that DID',
    data: { reason },
  })
}

function tooManyError(reason: string, message: string, retrySeconds: number): ParleyError {
  return new ParleyError('TooManyRequests', {
    message,
    data: { reason },
    headers: { 'retry-after': String(retrySeconds) },
  })
}

function busyError(): ParleyError {
  return new ParleyError('Unavailable', {
    message: 'Too many agents are being registered',
    data: { reason: 'busy' },
    headers: { 'retry-after': '2' },
  })
}

/**
 * Normalizes the address of an agent. The trailing slash is removed, except in the endpoint of an MCP server.
 * @throws ParleyError InvalidParams for an address that is invalid or refused by the guard
 */
function agentAddress(
  { url: text, isMcp = false }: Pick<RegistrationRequest, 'url' | 'isMcp'>,
  allowed: AllowedHosts,
): { url: string; endpoint: string } {
  const url = parseUrl(text, allowed)
  if (url.search !== '') throw registrationError('query', 'The URL must not have a query')
  // People copy the address of the card.
  const base = isMcp ? url.href : url.href.replace(/\/\.well-known\/agent(-card)?\.json$/, '')
  return { url: base.replace(/\/+$/, ''), endpoint: url.href }
}

function parseUrl(text: string, allowed: AllowedHosts): URL {
  try {
    return outgoingUrl(text, allowed).url
  } catch (error) {
    throw toRegistrationError(error, 'The URL')
  }
}
