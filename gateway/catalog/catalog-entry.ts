import { cleanLine } from '@parley/wire/model/clean-text'
import { agentUrl } from '../http/entry-out.ts'
import type { ProofOf } from '../http/entry-proof.ts'
import { isExternal } from '../registry/admission.ts'
import type { AgentDirectory } from '../registry/agent-policies.ts'
import type { AgentEntry } from '../registry/entry.ts'
import { isPaidAgent } from '../routing/placement/agent-prices.ts'
import { cleanLines } from './clean-lines.ts'
import { type Publisher, publisherAt, type TrustManifest, trustManifestOf, withProof } from './publisher.ts'
import { representativeQueries } from './representative-queries.ts'

export const artifactTypes = {
  a2a: 'application/a2a-agent-card+json',
  mcp: 'application/mcp-server-card+json',
  registry: 'application/ai-registry+json',
  catalog: 'application/ai-catalog+json',
} as const

/** An entry of an AI Catalog and of ARD (spec/catalog.md#entries). */
export interface CatalogEntry {
  identifier: string
  displayName: string
  type: string
  /** Of an entry, either this or `data` is present. */
  url?: string
  data?: object
  description?: string | undefined
  tags?: string[] | undefined
  capabilities?: string[] | undefined
  representativeQueries?: string[] | undefined
  version?: string | undefined
  updatedAt?: string | undefined
  publisher: { identifier: string; displayName: string; identityType: 'did' | 'dns' }
  metadata?: Record<string, string | number | boolean | null>
  trustManifest?: TrustManifest | undefined
}

export interface CatalogOptions {
  gatewayUrl: string
  /** Undefined if the gateway has no identity. */
  did: string | undefined
  version: string
  proofOf: ProofOf
}

/** An entry with the facts that lists sort by and that have no field. */
export interface ListedEntry {
  entry: CatalogEntry
  /** When the agent was registered. Entries of the gateway and of other publishers have no such time. */
  createdAt?: string
  /** Returns the entry with the gateway's proof, which is signed when it is first used. */
  complete: () => Promise<CatalogEntry>
}

const [nameMax, descriptionMax, wordMax] = [200, 1000, 100]
const [tagsMax, capabilitiesMax] = [20, 50]

type Cached = { of: AgentEntry; entries: ListedEntry[] }

/** Writes the catalog entries of the agents and of the gateway. */
export class CatalogEntries {
  readonly publisher: Publisher
  readonly #options: CatalogOptions
  /** By the list of skills, which heartbeats keep. */
  readonly #cache = new WeakMap<AgentEntry['skills'], Cached>()

  constructor(options: CatalogOptions) {
    this.#options = options
    this.publisher = publisherAt(options.gatewayUrl)
  }

  /** The operator of the catalog. */
  get host(): { displayName: string; identifier: string } {
    const { gatewayUrl, did } = this.#options
    return { displayName: `Parley at ${new URL(gatewayUrl).host}`, identifier: did ?? this.publisher.domain }
  }

  identifier(namespace: 'agent' | 'mcp' | 'gateway' | 'catalog', name: string): string {
    return `urn:air:${this.publisher.domain}:${namespace}:${name}`
  }

  /** Returns the entries of the admitted agents, ordered by slug: of each agent, its A2A card and its MCP server. */
  ofAgents(agents: AgentDirectory): ListedEntry[] {
    return agents.admitted().flatMap((agent) => this.ofAgent(agent))
  }

  ofAgent(agent: AgentEntry): ListedEntry[] {
    const known = this.#cache.get(agent.skills)
    if (known !== undefined && saysSame(known.of, agent)) return known.entries
    const entries = this.#write(agent).map((entry) => ({
      entry,
      createdAt: agent.registeredAt,
      complete: () => this.#complete(entry, agent),
    }))
    this.#cache.set(agent.skills, { of: agent, entries })
    return entries
  }

  async #complete(entry: CatalogEntry, agent: AgentEntry): Promise<CatalogEntry> {
    const { trustManifest } = entry
    if (trustManifest === undefined) return entry
    return { ...entry, trustManifest: withProof(trustManifest, await this.#options.proofOf(agent)) }
  }

  /** Returns the entries of the gateway: its card, its MCP server and its search. */
  ofGateway(): CatalogEntry[] {
    const { gatewayUrl, version } = this.#options
    const shared = { publisher: this.#publisherOut(), version }
    return [
      {
        ...shared,
        identifier: this.identifier('gateway', 'a2a'),
        displayName: `${this.host.displayName} (A2A)`,
        type: artifactTypes.a2a,
        url: `${gatewayUrl}/.well-known/agent-card.json`,
        description: 'All agents of the gateway behind one address. It selects the agent for each message.',
        tags: ['gateway'],
      },
      {
        ...shared,
        identifier: this.identifier('gateway', 'mcp'),
        displayName: `${this.host.displayName} (MCP)`,
        type: artifactTypes.mcp,
        url: `${gatewayUrl}/mcp/server-card`,
        description: 'The skills of all agents of the gateway as tools of one MCP server.',
        tags: ['gateway'],
      },
      {
        ...shared,
        identifier: this.identifier('gateway', 'registry'),
        displayName: `${this.host.displayName} (search)`,
        type: artifactTypes.registry,
        url: `${gatewayUrl}/`,
        description:
          'Finds agents of the gateway for a task described in words: POST search, GET agents, POST explore.',
        tags: ['registry', 'search'],
      },
    ]
  }

  /** Returns the entry of a part of the agents, of which the address is still missing. */
  catalogPart(part: number): Omit<CatalogEntry, 'url'> {
    return {
      identifier: this.identifier('catalog', `agents-${part}`),
      displayName: `${this.host.displayName}, agents, part ${part}`,
      type: artifactTypes.catalog,
      publisher: this.#publisherOut(),
    }
  }

  #publisherOut(): CatalogEntry['publisher'] {
    const { displayName, identifier } = this.host
    return { identifier, displayName, identityType: this.#options.did === undefined ? 'dns' : 'did' }
  }

  #write(agent: AgentEntry): CatalogEntry[] {
    const { gatewayUrl } = this.#options
    const { slug, name, card, skills } = agent
    const url = agentUrl(slug, gatewayUrl)
    const displayName = cleanLine(name, nameMax) || slug
    const tags = cleanLines(skills.flatMap((skill) => skill.tags).slice(0, 10 * tagsMax), wordMax)
    const capabilities = skills.slice(0, capabilitiesMax).map(({ id }) => id)
    const version = typeof card['version'] === 'string' ? cleanLine(card['version'], wordMax) : ''
    const described = {
      description: cleanLine(agent.description, descriptionMax) || undefined,
      tags: unlessEmpty(tags.slice(0, tagsMax)),
      capabilities: unlessEmpty(cleanLines(capabilities, wordMax)),
      representativeQueries: representativeQueries(agent),
      version: version || undefined,
      updatedAt: changedAt(agent),
      publisher: this.#publisherOut(),
      metadata: {
        slug,
        did: agent.did ?? null,
        verified: agent.verified,
        external: isExternal(agent),
        paid: isPaidAgent(agent),
      },
      trustManifest: trustManifestOf(agent, this.publisher, gatewayUrl),
    }
    return [
      {
        identifier: this.identifier('agent', slug),
        displayName,
        type: artifactTypes.a2a,
        url: `${url}/.well-known/agent-card.json`,
        ...described,
      },
      {
        identifier: this.identifier('mcp', slug),
        displayName,
        type: artifactTypes.mcp,
        url: `${url}/mcp/server-card`,
        ...described,
      },
    ]
  }
}

const unlessEmpty = (list: string[]) => (list.length === 0 ? undefined : list)

/** The time of the last change to the card that the registry has recorded. */
function changedAt({ registeredAt, cardChanges }: AgentEntry): string {
  const last = cardChanges?.at(-1)?.at ?? registeredAt
  return last > registeredAt ? last : registeredAt
}

/** The fields of an agent on which its entries depend, apart from the skills. */
const writtenFields = [
  ...(['slug', 'name', 'description', 'card', 'cardChanges', 'did', 'verified', 'relay'] as const),
  ...(['url', 'keys', 'origin', 'own', 'admitted', 'admittedBy'] as const),
]

function saysSame(before: AgentEntry, now: AgentEntry): boolean {
  return before === now || writtenFields.every((field) => before[field] === now[field])
}
