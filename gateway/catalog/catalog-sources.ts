import type { Log } from '@parley/kit/process/log'
import { AgentIndex } from '@parley/negotiation/index/agent-index'
import type { GatewayConfig } from '../config.ts'
import { GuardedClient, type GuardedClientOptions } from '../registration/guarded-client.ts'
import { onlySkills } from '../routing/negotiation/negotiator.ts'
import { artifactTypes, type ListedEntry } from './catalog-entry.ts'
import { type ReadManifest, readManifest } from './read-manifest.ts'

export interface CatalogSourcesOptions {
  /** Addresses of manifests, or of servers that have one at the well-known path. */
  sources: readonly string[]
  client: Pick<GuardedClient, 'get'>
  log: Log
  /** Time between two reads of a source. Default 1 hour. */
  refreshMs?: number
}

export interface Referral {
  identifier: string
  displayName: string
  type: string
  url: string
}

const wellKnown = ['/.well-known/ard.json', '/.well-known/ai-catalog.json']
const documentMaxBytes = 4 * 1024 * 1024
const depthMax = 4
const documentsMax = 50
const entriesPerSource = 5000
const referralsMax = 100

/**
 * The entries of other publishers (web ingestion, section 5.2 of ARD). They are kept in memory, and those of a source remain if
 * it cannot be read.
 */
export class CatalogSources implements Disposable {
  readonly #options: CatalogSourcesOptions
  readonly #index = new AgentIndex()
  /** The entries by source and then by identifier. */
  readonly #bySource = new Map<string, Map<string, ListedEntry>>()
  /** The entries of all sources, by identifier. */
  #entries = new Map<string, ListedEntry>()
  readonly #stopped = new AbortController()
  #timer: NodeJS.Timeout | undefined
  /** Resolves when the latest round has ended. */
  settled: Promise<void> = Promise.resolve()

  constructor(options: CatalogSourcesOptions) {
    this.#options = options
    if (options.sources.length > 0) this.settled = this.#next()
  }

  /** All entries, each once. */
  all(): ListedEntry[] {
    return [...this.#entries.values()]
  }

  referrals(): Referral[] {
    return this.all()
      .flatMap(({ entry: { identifier, displayName, type, url } }) =>
        type === artifactTypes.registry && url !== undefined ? [{ identifier, displayName, type, url }] : [],
      )
      .slice(0, referralsMax)
  }

  /** Returns the entries that match a text, with the skill match. */
  find(text: string): { listed: ListedEntry; match: number; reasons: string[] }[] {
    if (this.#entries.size === 0) return []
    const { candidates } = this.#index.rank(
      { taskSummary: text, weights: onlySkills },
      { limit: 1000, excludedLimit: 0 },
    )
    return candidates.flatMap(({ id, canHandle, subscores, reasons }) => {
      const listed = this.#entries.get(id)
      return listed === undefined || !canHandle ? [] : [{ listed, match: subscores.skillMatch, reasons }]
    })
  }

  [Symbol.dispose](): void {
    this.#stopped.abort()
    clearTimeout(this.#timer)
  }

  async #next(): Promise<void> {
    const { sources, refreshMs = 3_600_000 } = this.#options
    await Promise.all(sources.map((source) => this.#read(source)))
    if (this.#stopped.signal.aborted) return
    this.#timer = setTimeout(() => {
      this.settled = this.#next()
    }, refreshMs).unref()
  }

  async #read(source: string): Promise<void> {
    const { log } = this.#options
    try {
      const found = new Map<string, ListedEntry>()
      const refused = await this.#crawl(source, found)
      if (this.#stopped.signal.aborted) return
      this.#replace(source, found)
      log.info({ source, entries: found.size, refused }, 'read a catalog')
    } catch (error) {
      log.warn({ source, err: error }, 'a catalog could not be read')
    }
  }

  /** @returns the number of entries that were refused */
  async #crawl(source: string, found: Map<string, ListedEntry>): Promise<number> {
    let documents: { read: ReadManifest; at: URL }[] = [await this.#first(new URL(source))]
    const visited = new Set(documents.map(({ at }) => at.href))
    let refused = 0
    for (let depth = 0; documents.length > 0 && depth <= depthMax; depth += 1) {
      const nested: typeof documents = []
      for (const { read, at } of documents) {
        refused += read.refused
        for (const entry of read.entries)
          if (found.size < entriesPerSource)
            found.set(entry.identifier, { entry, complete: async () => entry })
        for (const json of read.embedded) {
          const inside = readManifest(json, at)
          if (inside !== undefined) nested.push({ read: inside, at })
        }
        for (const url of read.nested) {
          if (visited.has(url) || visited.size >= documentsMax) continue
          visited.add(url)
          const inside = await this.#get(new URL(url)).catch(() => undefined)
          if (inside !== undefined) nested.push({ read: inside, at: new URL(url) })
        }
      }
      documents = nested
    }
    return refused
  }

  async #first(address: URL) {
    const paths = address.pathname === '/' ? wellKnown : [address.pathname + address.search]
    for (const path of paths) {
      const at = new URL(path, address)
      const read = await this.#get(at)
      if (read !== undefined) return { read, at }
    }
    throw new Error(`There is no catalog at ${paths.join(' or ')}`)
  }

  async #get(url: URL): Promise<ReadManifest | undefined> {
    const { status, json } = await this.#options.client.get(url.href, 'The catalog')
    return status === 200 ? readManifest(json, url) : undefined
  }

  #replace(source: string, found: Map<string, ListedEntry>): void {
    const before = this.#bySource.get(source)
    this.#bySource.set(source, found)
    const now = new Map([...this.#bySource.values()].flatMap((entries) => [...entries]))
    this.#entries = now
    for (const id of before?.keys() ?? []) if (!now.has(id)) this.#index.remove(id)
    for (const id of found.keys()) {
      const listed = now.get(id)
      if (listed !== undefined) this.#index.put(id, id, offerOf(listed))
    }
  }
}

/** The texts of an entry as one skill. */
function offerOf({
  entry: { displayName, description = '', tags = [], capabilities = [], representativeQueries = [] },
}: ListedEntry) {
  const assessment = { keywords: capabilities, specializations: [], antiPatterns: [] }
  const skill = { id: displayName, name: displayName, description, tags, inputModes: [], outputModes: [] }
  return {
    name: displayName,
    description,
    queueDepth: 0,
    skills: [{ ...skill, examples: representativeQueries, allowedTools: [], performance: {}, assessment }],
  }
}

/** Starts to read CATALOG_SOURCES, if there are any. */
export function openCatalogSources(
  {
    config,
    guardedClient,
    log,
  }: { config: GatewayConfig; guardedClient: Partial<GuardedClientOptions> | undefined; log: Log },
  stack: AsyncDisposableStack,
): CatalogSources {
  const guard = { allowed: config.registryAllowedHosts, answerMaxBytes: documentMaxBytes, ...guardedClient }
  const client = stack.use(new GuardedClient(guard))
  return stack.use(new CatalogSources({ sources: config.catalogSources, client, log }))
}
