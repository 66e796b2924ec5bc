import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { RelayedAgent } from '@parley/kit/auth/relayed-agent'
import type { Log } from '@parley/kit/process/log'
import { cardSkillOf, toolOf } from '@parley/wire/codecs/parley/skills'
import type { RelayAddress } from '../addresses.ts'
import type { AgentCredentials } from '../registration/agent-credentials.ts'
import { type AgentEntry, audienceNamesOf } from '../registry/entry.ts'
import type { Registry } from '../registry/registry.ts'
import type { AgentFolder } from './agent-folders.ts'
import type { SupervisedAgent } from './supervised-agent.ts'

/** The name of the relay's data folder. Folders of agents do not begin with a dot. */
export const relayName = '.relay'

/** How often changes of the registry are passed on, and how often credentials set at other gateways are read. */
const [syncMs, loadMs] = [500, 30_000]

/** The entry point of the relay, which is TypeScript in a clone and JavaScript in the package. */
const relayEntry = () => fileURLToPath(import.meta.resolve('@parley/relay/relay-process'))

/**
 * Returns the entry point if the folder is that of the relay. A file of this name in the folder of an agent is not an entry
 * point, because the agent would run without the guards of the agent process.
 */
export function relayEntryIn(folder: string): string | undefined {
  return ['.ts', '.js']
    .map((type) => path.join(folder, `relay-process${type}`))
    .find((file) => existsSync(file) && file === relayEntry())
}

const relayFolder = (): AgentFolder => ({
  name: relayName,
  folder: path.dirname(relayEntry()),
  settings: { env: ['REGISTRY_ALLOWED_HOSTS'], required: [], allow: [], read: [] },
})

/** The servers that receive calls and credentials of a foreign agent, as `host:port`. */
function destinationsOf({ relay }: AgentEntry): string[] {
  const tokenUrls = (relay?.security ?? []).flatMap((one) => (one.kind === 'oauth2' ? [one.tokenUrl] : []))
  return [...(relay === undefined ? [] : [relay.url]), ...tokenUrls].flatMap((address) => {
    const url = URL.parse(address)
    if (url === null) return []
    return [`${url.hostname}:${url.port || (url.protocol === 'https:' ? '443' : '80')}`]
  })
}

export interface RelaySupervisionOptions {
  registry: Pick<Registry, 'all'>
  credentials: AgentCredentials
  address: RelayAddress
  gatewayUrl: string
  start: (folder: AgentFolder) => SupervisedAgent
  /** The settings that the relay needs and that are not set. */
  missing: readonly string[]
  /** AGENT_EGRESS, to which the servers of the foreign agents are added. Undefined: connections are not limited. */
  egress: readonly string[] | undefined
  /** Applies the changed egress list of the running relay. */
  updateEgress: (folder: AgentFolder) => Promise<void>
  log: Log
}

/** Starts the relay when the first foreign agent is registered, and describes the agents to it. */
export class RelaySupervision implements Disposable {
  readonly #options: RelaySupervisionOptions
  readonly #timer: NodeJS.Timeout
  /** The descriptions that the running relay has, by slug. */
  readonly #sent = new Map<string, string>()
  readonly #folder = relayFolder()
  /** The egress list that the relay has. */
  #egress: string | undefined
  #relay: SupervisedAgent | undefined
  #isReady = false
  #isMissingLogged = false
  #loadedAt = Number.NEGATIVE_INFINITY

  constructor(options: RelaySupervisionOptions) {
    this.#options = options
    this.#timer = setInterval(() => void this.#trySync(), syncMs).unref()
    void this.#trySync()
  }

  /** Called when the relay listens. A new process knows no agents. */
  ready(url: string): void {
    this.#options.address.url = url
    this.#sent.clear()
    this.#isReady = true
    void this.#trySync()
  }

  gone(): void {
    this.#options.address.url = undefined
    this.#isReady = false
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }

  async #trySync(): Promise<void> {
    try {
      await this.#sync()
    } catch (error) {
      this.#options.log.warn({ err: error }, 'the relay could not be updated')
    }
  }

  async #sync(): Promise<void> {
    const { registry, credentials, start, missing } = this.#options
    const entries = registry.all().filter(({ relay, admitted }) => relay !== undefined && admitted)
    if (entries.length === 0 && this.#relay === undefined) return
    if (missing.length > 0) return this.#logMissing(missing)
    await this.#allow(entries)
    this.#relay ??= start(this.#folder)
    if (!this.#isReady) return
    if (performance.now() - this.#loadedAt > loadMs) {
      this.#loadedAt = performance.now()
      await credentials.load()
    }
    const slugs = new Set(entries.map(({ slug }) => slug))
    // An agent with a new slug must not be open under both.
    for (const slug of this.#sent.keys()) {
      if (slugs.has(slug)) continue
      this.#sent.delete(slug)
      this.#relay.send({ type: 'relayed-agent', slug })
    }
    for (const entry of entries) {
      const agent = this.#descriptionOf(entry)
      const text = JSON.stringify(agent)
      if (agent === undefined || this.#sent.get(entry.slug) === text) continue
      this.#sent.set(entry.slug, text)
      this.#relay.send({ type: 'relayed-agent', slug: entry.slug, agent })
    }
  }

  #logMissing(missing: readonly string[]): void {
    if (this.#isMissingLogged) return
    this.#isMissingLogged = true
    const reason = `needs ${missing.join(', ')}`
    this.#options.log.error(`the relay of foreign agents is not started: ${reason}`)
  }

  /** Lets the relay reach the servers of these agents. */
  async #allow(entries: readonly AgentEntry[]): Promise<void> {
    const { egress, updateEgress } = this.#options
    if (egress === undefined) return
    const destinations = [...new Set([...egress, ...entries.flatMap(destinationsOf)])].sort()
    const text = destinations.join()
    if (text === this.#egress) return
    this.#folder.settings.egress = destinations
    if (this.#relay !== undefined) await updateEgress(this.#folder)
    this.#egress = text
  }

  #descriptionOf(entry: AgentEntry): RelayedAgent | undefined {
    const { id, relay, name, description, card, skills, slug } = entry
    if (relay === undefined) return undefined
    const { gatewayUrl, credentials } = this.#options
    const credential = credentials.of(entry)
    const { version } = card
    return {
      id,
      name,
      description,
      version: typeof version === 'string' && version !== '' ? version : '1.0.0',
      url: relay.url,
      dialect: relay.dialect,
      streaming: relay.streaming,
      skills: skills.map((skill) => ({ ...cardSkillOf(skill), ...toolOf(skill) })),
      publicUrl: `${gatewayUrl}/agents/${slug}`,
      audiences: audienceNamesOf(entry, gatewayUrl),
      ...(credential !== undefined && { credential }),
    }
  }
}
