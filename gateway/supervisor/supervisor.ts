import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { verifyDocument } from '@parley/kit/did/document'
import type { Log } from '@parley/kit/process/log'
import { type AgentFolder, findAgentFolders } from './agent-folders.ts'
import type { Command } from './agent-process.ts'
import { agentEnvironment } from './environment.ts'
import type { IdentityMessage } from './messages.ts'
import { Ports } from './ports.ts'
import {
  type ClientCredentials,
  type Outcome,
  SupervisedAgent,
  type Surroundings,
  type Timing,
} from './supervised-agent.ts'

export interface SupervisorOptions {
  agentsDir: string
  /** The gateway's; an agent's own is `<dataDir>/agents/<name>`. */
  dataDir: string
  host: string
  /** First port for an agent; 0 = any. */
  firstPort: number
  /** Our own environment; agents get a small part of it. */
  environment: NodeJS.ProcessEnv
  /** Settings for every agent: where the gateway and the OAuth server are. */
  settings: (agent: AgentFolder) => Record<string, string>
  /** Names that the environment must have for an agent, besides those of its `settings.json`. */
  alsoRequired?: (agent: AgentFolder) => string[]
  /** Makes or finds the OAuth client of an agent. */
  clientFor: (agent: {
    name: string
    did: string
    publicKey: string
  }) => Promise<ClientCredentials | undefined>
  onReady: Surroundings['onReady']
  onGone: Surroundings['onGone']
  /** Gets every line that the agents write. */
  pass: (line: string) => void
  log: Log
  command: (folder: string) => Command
  timing?: Timing
  /** Processes of each agent. Default 1; more need a store and a line that they share. */
  replicas?: number
}

/** Runs each folder of `agents/` as a process with its own key, OAuth client, port and database. */
export class Supervisor implements AsyncDisposable {
  readonly #options: SupervisorOptions
  readonly #ports: Ports
  readonly #nameOfDid = new Map<string, string>()
  readonly #agents: SupervisedAgent[] = []
  readonly #leftOut: Outcome[] = []

  private constructor(options: SupervisorOptions) {
    this.#options = options
    this.#ports = new Ports(options.host, options.firstPort)
  }

  /** Starts all agents at the same time; waits for none. One that cannot be started does not keep the others. */
  static async start(options: SupervisorOptions): Promise<Supervisor> {
    const supervisor = new Supervisor(options)
    for (const folder of await findAgentFolders(options.agentsDir)) await supervisor.#add(folder)
    return supervisor
  }

  /** What came of the first start of each agent, in the order of their names. */
  async settled(): Promise<Outcome[]> {
    const outcomes = await Promise.all(this.#agents.map((agent) => agent.settled))
    return [...outcomes, ...this.#leftOut].sort((a, b) =>
      a.name === b.name ? a.number - b.number : a.name < b.name ? -1 : 1,
    )
  }

  /** Names of the agents that are not started, for their settings are missing or wrong. */
  leftOut(): string[] {
    return this.#leftOut.map(({ name }) => name)
  }

  /** Process ids of the agents that run now. */
  pids(): number[] {
    return this.#agents.flatMap((agent) => agent.pid ?? [])
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#agents.map((agent) => agent.stop()))
  }

  async #add(folder: AgentFolder): Promise<void> {
    const { environment, log, dataDir } = this.#options
    const required = [...folder.settings.required, ...(this.#options.alsoRequired?.(folder) ?? [])]
    const missing = required.filter((name) => (environment[name] ?? '') === '')
    const reason = folder.fault ?? (missing.length === 0 ? undefined : `needs ${missing.join(', ')}`)
    if (reason !== undefined) {
      const level = folder.fault === undefined ? 'info' : 'error'
      log[level]({ agent: folder.name }, `agent ${folder.name} is not started: ${reason}`)
      this.#leftOut.push({ name: folder.name, number: 1, state: 'left-out', reason })
      return
    }
    await mkdir(path.join(dataDir, 'agents', folder.name), { recursive: true, mode: 0o700 })
    const { timing = {}, replicas = 1 } = this.#options
    for (let number = 1; number <= replicas; number += 1)
      this.#agents.push(new SupervisedAgent(folder, this.#surroundings(), timing, number))
  }

  #surroundings(): Surroundings {
    const { host, dataDir, environment, command, onReady, onGone, pass, log } = this.#options
    return {
      command,
      environment: (agent, port) =>
        agentEnvironment(environment, agent.settings, {
          ...this.#options.settings(agent),
          HOST: host,
          PORT: String(port),
          DATA_DIR: path.join(dataDir, 'agents', agent.name),
        }),
      takePort: (preferred) => this.#ports.take(preferred),
      releasePort: (port) => this.#ports.release(port),
      clientFor: (agent, identity) => this.#clientFor(agent, identity),
      onReady,
      onGone,
      pass,
      log,
    }
  }

  /** A process speaks for the DID of its own key alone, and no two agents for the same. */
  async #clientFor(agent: AgentFolder, identity: IdentityMessage): Promise<ClientCredentials | undefined> {
    const { did, document } = identity
    const publicKey = keyOf(document, did)
    const holder = this.#nameOfDid.get(did) ?? agent.name
    if (holder !== agent.name) throw new Error(`its DID is that of agent ${holder}`)
    this.#nameOfDid.set(did, agent.name)
    return this.#options.clientFor({ name: agent.name, did, publicKey })
  }
}

/** The key that signs now. @throws Error unless the document leads to it from the key that the DID was made of */
function keyOf(document: unknown, did: string): string {
  try {
    return verifyDocument(document, did).at(-1) as string
  } catch (cause) {
    throw new Error(`its DID is not of its key: ${(cause as Error).message}`, { cause })
  }
}
