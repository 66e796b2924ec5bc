import path from 'node:path'
import { verifyStart } from '@parley/kit/did/challenge'
import { verifyDocument } from '@parley/kit/did/document'
import type { Log } from '@parley/kit/process/log'
import type { IsolationSettings } from '../config.ts'
import { type AgentFolders, Isolation, type Launch } from '../isolation/isolation.ts'
import type { Command } from '../isolation/launch.ts'
import { type AgentFolder, findAgentFolders } from './agent-folders.ts'
import { agentEnvironment } from './environment.ts'
import type { ClientCredentials, Supplies } from './introduction.ts'
import type { ProvenIdentity } from './messages.ts'
import { Ports } from './ports.ts'
import { type Outcome, type ProcessHooks, SupervisedAgent, type Timing } from './supervised-agent.ts'

export interface SupervisorOptions {
  agentsDir: string
  /** The gateway's data folder. An agent's folder is `<dataDir>/agents/<name>`. */
  dataDir: string
  host: string
  /** The first port for an agent. If 0, the operating system chooses every port. */
  firstPort: number
  /** The gateway's environment, of which agents receive only a small part. */
  environment: NodeJS.ProcessEnv
  /** Returns the settings that an agent receives, such as the addresses of the gateway and the OAuth server. */
  settings: (agent: AgentFolder) => Record<string, string>
  /** Returns the variables that an agent requires in addition to those in its `settings.json`. */
  alsoRequired?: (agent: AgentFolder) => string[]
  /** Creates or finds the OAuth client of an agent. */
  clientFor: (agent: {
    name: string
    did: string
    publicKey: string
  }) => Promise<ClientCredentials | undefined>
  /** Returns the MongoDB database of an agent. Undefined if the store is embedded. */
  storeFor?: ((agent: { name: string; did: string }) => Promise<string>) | undefined
  onReady: ProcessHooks['onReady']
  onGone: ProcessHooks['onGone']
  /** Called with every line that the agents write. */
  pass: (line: string) => void
  log: Log
  command: (folder: string) => Command
  isolation: IsolationSettings
  /** Destinations that every agent needs, as `host:port`. */
  needed?: readonly string[]
  /** Files of certificate authorities that every agent may read. */
  authorities?: readonly string[]
  timing?: Timing
  /** Number of processes per agent. Defaults to 1. Several processes need a shared store and a shared queue. */
  replicas?: number
}

/** Why an agent does not run. `since` is present if its process ends repeatedly, absent if it was not started. */
export interface NotRunning {
  name: string
  reason: string
  since?: number
}

/** Runs each folder in `agents/` as a process with its own key, OAuth client, port and database. */
export class Supervisor implements AsyncDisposable {
  /** How the agents are isolated. */
  readonly isolation: Isolation
  readonly #options: SupervisorOptions
  readonly #ports: Ports
  readonly #nameOfDid = new Map<string, string>()
  readonly #agents: SupervisedAgent[] = []
  readonly #notStarted: (Outcome & { state: 'not-started' })[] = []
  /** Processes that are not agents. */
  readonly #others: SupervisedAgent[] = []

  private constructor(options: SupervisorOptions, isolation: Isolation) {
    this.#options = options
    this.isolation = isolation
    this.#ports = new Ports(options.host, options.firstPort)
  }

  /**
   * Starts all agents concurrently without waiting for them. An agent that cannot start does not affect the others.
   * @throws ConfigError if the agents cannot be isolated as AGENT_ISOLATION demands
   */
  static async start(options: SupervisorOptions): Promise<Supervisor> {
    const { isolation: settings, agentsDir, log } = options
    const isolation = await Isolation.open({ ...options, settings })
    log.info({ isolation: isolation.mode, missing: isolation.missing }, isolation.summary)
    const supervisor = new Supervisor(options, isolation)
    for (const folder of await findAgentFolders(agentsDir)) supervisor.#add(folder)
    return supervisor
  }

  /** Resolves with the results of each agent's first start, sorted by name. */
  async settled(): Promise<Outcome[]> {
    const outcomes = await Promise.all(this.#agents.map((agent) => agent.settled))
    return [...outcomes, ...this.#notStarted].sort((a, b) =>
      a.name === b.name ? a.number - b.number : a.name < b.name ? -1 : 1,
    )
  }

  /** Returns the names of the agents that are not started because of missing or invalid settings. */
  notStarted(): string[] {
    return this.#notStarted.map(({ name }) => name)
  }

  /** Returns the agents that are not started, and those with a process that ends repeatedly. */
  notRunning(): NotRunning[] {
    const failing = new Map<string, NotRunning>()
    for (const { folder, failing: failure } of this.#agents)
      if (failure !== undefined) failing.set(folder.name, { name: folder.name, ...failure })
    return [...this.#notStarted.map(({ name, reason }) => ({ name, reason })), ...failing.values()]
  }

  /** Returns the process ids of the running agents. */
  pids(): number[] {
    return [...this.#agents, ...this.#others].flatMap((agent) => agent.pid ?? [])
  }

  /** Starts another program in one process with the protections of an agent. */
  start(folder: AgentFolder): SupervisedAgent {
    const process = new SupervisedAgent(folder, this.#processHooks(), this.#options.timing ?? {})
    this.#others.push(process)
    return process
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#agents, ...this.#others].map((agent) => agent.stop()))
    await this.isolation[Symbol.asyncDispose]()
  }

  #add(folder: AgentFolder): void {
    const { environment, log } = this.#options
    const required = [...folder.settings.required, ...(this.#options.alsoRequired?.(folder) ?? [])]
    const missing = required.filter((name) => (environment[name] ?? '') === '')
    const reason = folder.fault ?? (missing.length === 0 ? undefined : `needs ${missing.join(', ')}`)
    if (reason !== undefined) {
      const level = folder.fault === undefined ? 'info' : 'error'
      log[level]({ agent: folder.name }, `agent ${folder.name} is not started: ${reason}`)
      this.#notStarted.push({ name: folder.name, number: 1, state: 'not-started', reason })
      return
    }
    const { timing = {}, replicas = 1 } = this.#options
    for (let number = 1; number <= replicas; number += 1)
      this.#agents.push(new SupervisedAgent(folder, this.#processHooks(), timing, number))
  }

  #processHooks(): ProcessHooks {
    const { host, onReady, onGone, pass, log } = this.#options
    return {
      isolation: this.isolation,
      launch: (agent, port) => this.#launch(agent, port),
      isAssigned: (url, port) => isAssigned(url, host, port),
      takePort: (preferred) => this.#ports.take(preferred),
      releasePort: (port) => this.#ports.release(port),
      suppliesFor: (agent, identity) => this.#suppliesFor(agent, identity),
      onReady,
      onGone,
      pass,
      log,
    }
  }

  async #launch(agent: AgentFolder, port: number): Promise<Launch> {
    const { host, dataDir, environment } = this.#options
    const data = path.join(dataDir, 'agents', agent.name)
    const env = agentEnvironment(environment, agent.settings, {
      ...this.#options.settings(agent),
      HOST: host,
      PORT: String(port),
      DATA_DIR: data,
    })
    const database = /^sqlite:(.+)$/.exec(env['STORE_URL'] ?? '')?.[1]
    const folders: AgentFolders = database === undefined ? [data] : [data, path.resolve(database)]
    return this.isolation.prepare(agent, { env, folders })
  }

  /** Verifies that the process holds the key of its DID and that no other agent uses the DID. */
  async #suppliesFor({ name }: AgentFolder, identity: ProvenIdentity): Promise<Supplies> {
    const { did, document, nonce, signature } = identity
    const publicKey = keyOf(document, did)
    if (!verifyStart(nonce, did, { publicKey, signature }))
      throw new Error('it did not prove that it has the key of its DID')
    const holder = this.#nameOfDid.get(did) ?? name
    if (holder !== name) throw new Error(`its DID is already used by agent ${holder}`)
    this.#nameOfDid.set(did, name)
    const { clientFor, storeFor } = this.#options
    return { client: await clientFor({ name, did, publicKey }), storeUrl: await storeFor?.({ name, did }) }
  }
}

/** Whether an agent reported the address that it was given. Port 0 lets the operating system choose the port. */
function isAssigned(text: string, host: string, port: number): boolean {
  const url = new URL(text)
  const name = url.hostname.replace(/^\[(.*)\]$/, '$1')
  const isHost = name === host || ['127.0.0.1', '::1', 'localhost'].includes(name)
  const isPort = port === 0 || Number(url.port) === port
  return isHost && isPort && url.pathname === '/' && url.username === '' && url.search === ''
}

/** Returns the current signing key. @throws Error unless the document links that key to the key in the DID */
function keyOf(document: unknown, did: string): string {
  try {
    const key = verifyDocument(document, did).at(-1)
    if (key === undefined) throw new Error('the document lists no key')
    return key
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`its DID does not match its key: ${reason}`, { cause })
  }
}
