import { setTimeout as wait } from 'node:timers/promises'
import type { Log } from '@parley/kit/process/log'
import { request } from 'undici'
import type { Command } from '../isolation/launch.ts'
import { AgentProcess } from './agent-process.ts'
import { Backoff } from './backoff.ts'
import { watchForHang } from './watchdog.ts'

export interface AdditionalGatewayOptions {
  command: Command
  /** The address at which the gateway listens. */
  url: string
  /** The environment of the starting gateway with a different port. */
  env: NodeJS.ProcessEnv
  pass: (line: string) => void
  log: Log
  /** Time limit for the first successful health check. Defaults to 60 s. */
  startLimitMs?: number
  /** Time limit for stopping. Defaults to 15 s. */
  stopLimitMs?: number
}

/** An additional gateway process on this machine. It is restarted whenever it ends, until it is stopped. */
export class AdditionalGateway {
  readonly url: string
  /** Resolves after the first attempt to start, with true if the gateway became healthy. */
  readonly settled: Promise<boolean>
  readonly #options: AdditionalGatewayOptions
  readonly #settle: (ready: boolean) => void
  readonly #stopping = new AbortController()
  readonly #ended: Promise<void>
  #process: AgentProcess | undefined

  constructor(options: AdditionalGatewayOptions) {
    this.url = options.url
    this.#options = options
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.settled = promise
    this.#settle = resolve
    this.#ended = this.#keepRunning()
  }

  get pid(): number | undefined {
    return this.#process?.pid
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#process?.stop(this.#options.stopLimitMs ?? 15_000)
    await this.#ended
  }

  async #keepRunning(): Promise<void> {
    const { log, url } = this.#options
    const { signal } = this.#stopping
    const backoff = new Backoff()
    while (!signal.aborted) {
      const startedAt = Date.now()
      const how = await this.#runOnce()
      this.#settle(false)
      if (signal.aborted) return
      const restartInMs = backoff.next(Date.now() - startedAt)
      log.warn({ url, restart_in_ms: restartInMs }, `additional gateway ended: ${how}`)
      await wait(restartInMs, undefined, { signal }).catch(() => undefined)
    }
  }

  async #runOnce(): Promise<string> {
    const { command, env, pass, url } = this.#options
    const over = new AbortController()
    const process = new AgentProcess({
      command,
      cwd: globalThis.process.cwd(),
      env,
      pass,
      onMessage: () => {},
    })
    this.#process = process
    const watched = this.#watch(process, over.signal)
    const { code, signal, lastLines } = await process.exited
    over.abort()
    this.#process = undefined
    await watched
    return `${signal ?? `exit code ${code}`} ${lastLines.join(' | ')} (${url})`
  }

  /** Kills the process if it does not become healthy or later hangs. */
  async #watch(process: AgentProcess, over: AbortSignal): Promise<void> {
    const { url, startLimitMs = 60_000 } = this.#options
    const until = Date.now() + startLimitMs
    while (!over.aborted && !(await answers(url, over))) {
      if (Date.now() > until) return process.kill()
      await wait(100, undefined, { signal: over }).catch(() => undefined)
    }
    if (over.aborted) return
    this.#settle(true)
    if (await watchForHang(url, over)) process.kill()
  }
}

async function answers(url: string, signal: AbortSignal): Promise<boolean> {
  try {
    const response = await request(`${url}/health`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(2000)]),
    })
    await response.body.dump({ limit: 64 * 1024 })
    return response.statusCode === 200
  } catch {
    return false
  }
}
