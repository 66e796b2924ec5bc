import { rm } from 'node:fs/promises'
import { openStore } from '@parley/agent/internal/server/backends'
import { removeOldTasks, retentionEveryMs } from '@parley/engine/store/retention'
import { agentId } from '@parley/kit/did/did'
import { KeyedMutex } from '@parley/kit/process/keyed-mutex'
import type { AgentStore } from '../store/links.ts'
import { type HostParts, placeOf } from './open-app.ts'

const dayMs = 86_400_000
/** How long one run may occupy the store of an agent. The next run continues. */
const storeMaxMs = 60_000

interface RetentionOptions extends Pick<HostParts, 'config' | 'relay' | 'links' | 'log' | 'storeUrl'> {
  /** Returns the entry IDs of the agents that the gateway has named. */
  named: () => ReadonlySet<string>
  /** Interval between runs. Default: that of the retention of apps; the first run starts immediately. */
  everyMs?: number
}

/**
 * Applies RETENTION_DAYS to agents with closed apps, one after another, and removes the data of an agent that the
 * gateway has not named for as many days. The apps that are open remove their old tasks themselves.
 */
export class ClosedAppRetention implements AsyncDisposable {
  readonly #options: RetentionOptions
  /** Protects each store from concurrent use by an app and by the retention. */
  readonly #stores = new KeyedMutex()
  /** The entry IDs of agents with an app that is open, being opened or being closed. */
  readonly #open = new Set<string>()
  readonly #stopping = new AbortController()
  readonly #timer: NodeJS.Timeout | undefined
  /** The store that the current run uses. */
  #visited: { agent: string; leave: AbortController } | undefined
  #run: Promise<void> | undefined
  /** Absences count from the second run on, because a new relay receives the agents after its start. */
  #areAgentsNamed = false

  constructor(options: RetentionOptions) {
    this.#options = options
    const { config, storeUrl, everyMs = retentionEveryMs } = options
    if (config.retentionDays === 0 || storeUrl === 'memory:') return
    this.#timer = setInterval(() => void this.run(), everyMs).unref()
    void this.run()
  }

  /** Opens an app, for which the retention leaves the agent's store. */
  async open<App extends AsyncDisposable>(agent: string, start: () => Promise<App>): Promise<App> {
    const { links, relay, config } = this.#options
    this.#open.add(agent)
    if (this.#visited?.agent === agent) this.#visited.leave.abort()
    return this.#stores.run([agent], async () => {
      try {
        const { identity } = placeOf(agent, { config, relay })
        await links.saveStore({ agent, id: agentId(identity.did) })
        const app = await start()
        return { ...app, [Symbol.asyncDispose]: () => this.#close(agent, app) }
      } catch (error) {
        this.#open.delete(agent)
        throw error
      }
    })
  }

  #close(agent: string, app: AsyncDisposable): Promise<void> {
    return this.#stores.run([agent], async () => {
      try {
        await app[Symbol.asyncDispose]()
      } finally {
        this.#open.delete(agent)
      }
    })
  }

  /** Runs once, or waits for the current run. */
  run(): Promise<void> {
    this.#run ??= this.#runOnce().finally(() => {
      this.#run = undefined
    })
    return this.#run
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer)
    this.#stopping.abort()
    await this.#run
  }

  async #runOnce(): Promise<void> {
    const { links, log } = this.#options
    try {
      for (const store of await links.stores()) {
        if (this.#stopping.signal.aborted) return
        await this.#stores.run([store.agent], () => this.#visit(store))
      }
      this.#areAgentsNamed = true
    } catch (error) {
      log.warn({ err: error }, 'the retention of closed agents failed')
    }
  }

  async #visit(store: AgentStore): Promise<void> {
    const { agent } = store
    if (this.#open.has(agent)) return
    const leave = new AbortController()
    this.#visited = { agent, leave }
    try {
      if (await this.#isExpired(store)) return await this.#removeData(store)
      const signals = [leave.signal, this.#stopping.signal, AbortSignal.timeout(storeMaxMs)]
      await this.#removeOldTasks(store, AbortSignal.any(signals))
    } catch (error) {
      this.#options.log.warn({ err: error, agent }, 'the retention of a closed agent failed')
    } finally {
      this.#visited = undefined
    }
  }

  /** Notes whether the gateway names the agent. Resolves with true if it has not for RETENTION_DAYS. */
  async #isExpired({ agent, id, absentSince }: AgentStore): Promise<boolean> {
    const { links, named, config } = this.#options
    if (named().has(agent)) {
      if (absentSince !== undefined) await links.saveStore({ agent, id })
      return false
    }
    if (!this.#areAgentsNamed) return false
    if (absentSince === undefined) await links.saveStore({ agent, id, absentSince: Date.now() })
    return absentSince !== undefined && Date.now() - absentSince >= config.retentionDays * dayMs
  }

  async #removeOldTasks({ agent, id }: AgentStore, signal: AbortSignal): Promise<void> {
    const { storeUrl, config, log } = this.#options
    const { storeDir } = placeOf(agent, this.#options)
    const { store } = await openStore({ storeUrl, storeDir, agentId: id, log })
    await using _open = store
    try {
      const tasks = await removeOldTasks({ store, days: config.retentionDays }, signal)
      if (tasks > 0) log.info({ agent, tasks }, 'old tasks were removed')
    } catch (error) {
      if (!signal.aborted) throw error
    }
  }

  async #removeData(store: AgentStore): Promise<void> {
    const { agent, id } = store
    const { storeUrl, links, log } = this.#options
    if (storeUrl !== undefined) {
      const { removeDocuments } = await import('../store/mongodb/documents.ts')
      await removeDocuments(storeUrl, id)
    }
    const { dataDir, storeDir } = placeOf(agent, this.#options)
    for (const folder of [dataDir, storeDir]) await rm(folder, { recursive: true, force: true })
    await links.removeStore(store)
    log.info({ agent }, 'the data of a removed agent was removed')
  }
}
