import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { ClientToken } from '@parley/kit/auth/client-token'
import { freePort } from '@parley/tools/testing/port'
import { Balancer } from './balancer.ts'
import { admitOwn, readClient } from './operator.ts'
import { cliIn, ParleyProcess } from './parley-process.ts'

type Settings = Record<string, string>

/** An address in front of the gateways, for clients and agents. */
export interface FrontEnd extends AsyncDisposable {
  url: string
}

export interface ClusterOptions {
  gateways: number
  /** The processes run the version of this checkout. Default: that of this file. */
  checkout?: string | undefined
  /** Settings for all processes. */
  settings?: Settings
  gatewaySettings?: Settings
  agentSettings?: Settings
  /** Starts all gateways at the same time. By default, the first gateway creates the keys before the others start. */
  startsTogether?: boolean
  /** Restarts processes that exit. */
  restarts?: boolean
  /** Folder for one log file per process. By default, each process collects its output in memory. */
  logs?: string | undefined
  /** Starts the front end. By default, clients and agents use the address of the first gateway. */
  frontEnd?: (ports: number[], folder: string) => Promise<FrontEnd>
}

export interface AgentOptions {
  /** Name of the process. */
  name: string
  /** Folder that contains its `agent.ts`. */
  source: string
  /** Name of its DATA_DIR, `agent` by default. Processes with the same DATA_DIR are replicas. */
  data?: string
  settings?: Settings
}

/** Gateways with the embedded OAuth server, and unsupervised agents. Each process can be killed and restarted. */
export class Cluster implements AsyncDisposable {
  /** Address of the front end. */
  readonly url: string
  readonly folder: string
  readonly gateways: ParleyProcess[] = []
  readonly agents: ParleyProcess[] = []
  readonly #options: ClusterOptions
  #resources: AsyncDisposableStack

  private constructor(url: string, folder: string, options: ClusterOptions, resources: AsyncDisposableStack) {
    this.url = url
    this.folder = folder
    this.#options = options
    this.#resources = resources
  }

  static async start(options: ClusterOptions): Promise<Cluster> {
    await using stack = new AsyncDisposableStack()
    const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-cluster-'))
    stack.defer(() => rmSync(folder, { recursive: true, force: true }))
    if (options.logs !== undefined) mkdirSync(options.logs, { recursive: true })
    const ports = await Promise.all(Array.from({ length: options.gateways }, freePort))
    const front = await options.frontEnd?.(ports, folder)
    if (front !== undefined) stack.use(front)
    const cluster = new Cluster(front?.url ?? `http://127.0.0.1:${ports[0]}`, folder, options, stack)
    const all = ports.map((port, index) => cluster.#gateway(`gateway-${index + 1}`, port))
    cluster.gateways.push(...all)
    if (options.startsTogether !== true) await all.shift()?.start()
    await Promise.all(all.map((gateway) => gateway.start()))
    cluster.#resources = stack.move()
    return cluster
  }

  /** DATA_DIR of the gateways. */
  get dataDir(): string {
    return path.join(this.folder, 'gateway')
  }

  /** The token for registrations with the embedded OAuth server. */
  get initialToken(): string {
    return readFileSync(path.join(this.dataDir, 'oauth', 'initial-access-token'), 'utf8').trim()
  }

  /** Starts a process of an agent. The agent gets no work until `admit` is called. */
  async startAgent({ name, source, data = 'agent', settings }: AgentOptions): Promise<ParleyProcess> {
    const agent = this.#process(name, ['agent', source], await freePort(), {
      DATA_DIR: path.join(this.folder, data),
      GATEWAY_URL: this.url,
      OAUTH_INITIAL_TOKEN: this.initialToken,
      ...this.#options.agentSettings,
      ...settings,
    })
    this.agents.push(agent)
    return agent.start()
  }

  admit(slug: string): Promise<void> {
    return admitOwn(this.url, slug, this.dataDir)
  }

  /** Tokens for the development client. @param at the gateway that issues them, by default the front end */
  developmentToken(at?: ParleyProcess): ClientToken {
    const client = readClient(this.dataDir, 'dev-client.json')
    const tokenUrl = at === undefined ? client.tokenUrl : `${at.url}/oauth2/token`
    return new ClientToken({ ...client, tokenUrl, scope: 'agent:read agent:write' })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#resources.disposeAsync()
  }

  #gateway(name: string, port: number): ParleyProcess {
    return this.#process(name, ['gateway'], port, {
      DATA_DIR: this.dataDir,
      PUBLIC_URL: this.url,
      REGISTRY_ALLOWED_HOSTS: '127.0.0.1',
      ...this.#options.gatewaySettings,
    })
  }

  #process(name: string, args: string[], port: number, env: Settings): ParleyProcess {
    const { logs, restarts = false, settings, checkout } = this.#options
    const command = checkout === undefined ? {} : { command: cliIn(checkout) }
    const logFile = logs === undefined ? undefined : path.join(logs, `${name}.log`)
    return this.#resources.use(
      new ParleyProcess({ name, args, port, env: { ...settings, ...env }, logFile, restarts, ...command }),
    )
  }
}

/** Starts the test balancer as the front end. */
export function balanced(options?: { healthChecks: boolean }) {
  return async (ports: number[]): Promise<Balancer> => {
    const balancer = await Balancer.start(options)
    balancer.targets = ports
    return balancer
  }
}
