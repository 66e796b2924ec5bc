import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { admitOwn } from '@parley/tools/chaos/admit-own'
import { freePort } from '@parley/tools/testing/port'
import { Balancer } from './balancer.ts'
import { ParleyProcess } from './parley-process.ts'
import type { Standing } from './standing.ts'

/** The number in front says how many parts it makes, five a second; the last one is the id of its process. */
const agentSource = `
import { setTimeout as wait } from 'node:timers/promises'
import { defineAgent } from ${JSON.stringify(pathToFileURL(path.resolve('shared/agent/author/define-agent.ts')).href)}
export default defineAgent({
  name: 'worker', description: 'Works', concurrency: 2,
  skills: [{ id: 'work', name: 'Work', description: 'Works' }],
  async *handle({ text, signal }) {
    for (let part = 0; part < Number.parseInt(text, 10); part += 1) {
      await wait(200, undefined, { signal })
      yield 'part ' + part + ' '
    }
    yield String(process.pid)
  },
})`

/**
 * What an operator starts by hand, each process by a command of its own and no supervisor above them: two gateways behind a
 * balancer, and, in a folder of its own, processes of one agent that know nothing of each other but key, store and Redis.
 */
export class TwoGateways implements AsyncDisposable {
  readonly balancer: Balancer
  readonly gateways: ParleyProcess[] = []
  readonly ports: number[]
  readonly #folder: string
  readonly #store: Record<string, string>
  readonly #agentStore: Record<string, string>
  readonly #agents: ParleyProcess[] = []

  private constructor(standing: Standing, balancer: Balancer, ports: number[]) {
    this.balancer = balancer
    this.ports = ports
    this.#store = standing.newStore()
    this.#agentStore = standing.newStore()
    this.#folder = mkdtempSync(path.join(tmpdir(), 'parley-by-hand-'))
    mkdirSync(path.join(this.#folder, 'house'))
    mkdirSync(path.join(this.#folder, 'outside', 'agents', 'worker'), { recursive: true })
    writeFileSync(path.join(this.#folder, 'outside', 'agents', 'worker', 'agent.js'), agentSource)
  }

  static async start(standing: Standing): Promise<TwoGateways> {
    const ports = [await freePort(), await freePort()]
    const house = new TwoGateways(standing, await Balancer.start(), ports)
    try {
      house.balancer.targets = ports
      await Promise.all(ports.map((_, number) => house.startGateway(number)))
    } catch (error) {
      await house[Symbol.asyncDispose]()
      throw error
    }
    return house
  }

  gatewayUrl(number: number): string {
    return `http://127.0.0.1:${this.ports[number]}`
  }

  async startGateway(number: number): Promise<void> {
    this.gateways[number] = await ParleyProcess.start(['gateway'], /^gateway +ready/m, {
      cwd: path.join(this.#folder, 'house'),
      env: {
        DATA_DIR: '.parley',
        PORT: String(this.ports[number]),
        PUBLIC_URL: this.balancer.url,
        REGISTRY_ALLOWED_HOSTS: '127.0.0.1',
        ...this.#store,
      },
    })
  }

  /** One more process of the agent: the first one makes the key and the client that the others find. */
  async startAgent(): Promise<{ process: ParleyProcess; url: string }> {
    const port = await freePort()
    const process = await ParleyProcess.start(['agent', 'agents/worker'], /registered at the gateway/, {
      cwd: path.join(this.#folder, 'outside'),
      env: {
        PORT: String(port),
        GATEWAY_URL: this.balancer.url,
        OAUTH_INITIAL_TOKEN: this.#read('oauth', 'initial-access-token').trim(),
        ...this.#agentStore,
      },
    })
    this.#agents.push(process)
    if (this.#agents.length === 1)
      await admitOwn(this.balancer.url, 'worker', path.join(this.#folder, 'house', '.parley'))
    return { process, url: `http://127.0.0.1:${port}` }
  }

  /** A fresh one of the development client, asked for at that gateway. */
  async token(gateway: number): Promise<string> {
    const { client_id, client_secret } = JSON.parse(this.#read('dev-client.json')) as Record<string, string>
    const response = await fetch(`${this.gatewayUrl(gateway)}/oauth2/token`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`,
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: 'grant_type=client_credentials&scope=agent:read+agent:write',
    })
    return ((await response.json()) as { access_token: string }).access_token
  }

  #read(...names: string[]): string {
    return readFileSync(path.join(this.#folder, 'house', '.parley', ...names), 'utf8')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#agents, ...this.gateways].map((one) => one?.kill()))
    await this.balancer[Symbol.asyncDispose]()
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
