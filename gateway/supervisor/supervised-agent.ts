import { setTimeout as wait } from 'node:timers/promises'
import type { Log } from '@parley/kit/process/log'
import type { Isolation, Launch } from '../isolation/isolation.ts'
import type { AgentFolder } from './agent-folders.ts'
import { AgentProcess, type AgentProcessOptions, type Exit } from './agent-process.ts'
import { Backoff, type BackoffOptions } from './backoff.ts'
import { Introduction, type Supplies } from './introduction.ts'
import type { AgentMessage, ProvenIdentity, ReadyMessage } from './messages.ts'
import { type WatchdogOptions, watchForHang } from './watchdog.ts'

/** What the registry needs to know about an agent process that listens. */
export interface ReadyAgent extends ReadyMessage {
  /** Name of the agent's folder. */
  name: string
  /** Number of the process, starting at 1. */
  number: number
  did: string
  /** The agent's OAuth client id, or its DID if it has no client. */
  owner: string
}

/** Functions and settings that the gateway provides for a supervised process. */
export interface ProcessHooks {
  isolation: Isolation
  /** Prepares the agent's folders and returns its command and environment. */
  launch: (agent: AgentFolder, port: number) => Promise<Launch>
  /** Whether an address that a process reports is the one that it was given. */
  isAssigned: (url: string, port: number) => boolean
  takePort: (preferred?: number) => Promise<number>
  releasePort: (port: number) => void
  /**
   * Returns the agent's OAuth client and store. The first call may move the agent's data, which can take long.
   * @throws Error if the process does not have the key of the identity, or the identity belongs to another agent
   */
  suppliesFor: (agent: AgentFolder, identity: ProvenIdentity) => Promise<Supplies>
  onReady: (agent: ReadyAgent) => Promise<void>
  /** Called when the process has ended. `back` is true if the process will be restarted. */
  onGone: (name: string, back: boolean, number: number) => void
  pass: (line: string) => void
  log: Log
}

export interface Timing {
  backoff?: BackoffOptions
  watchdog?: WatchdogOptions
  /** Time limit until the process listens. Defaults to 60 s. */
  startLimitMs?: number
  /** Time limit for stopping. Defaults to 15 s. */
  stopLimitMs?: number
}

/** The result of the first start. */
export type Outcome = { name: string; number: number } & (
  | { state: 'ready'; agent: ReadyAgent }
  | { state: 'failed' | 'not-started'; reason: string }
)

/** A process that ended once is not reported, because it usually recovers. */
const failuresMin = 2

/** Keeps one process of an agent running until it is stopped. */
export class SupervisedAgent {
  readonly folder: AgentFolder
  /** Resolves when the first start has succeeded or failed. */
  readonly settled: Promise<Outcome>
  readonly #number: number
  readonly #settle: (outcome: Outcome) => void
  readonly #hooks: ProcessHooks
  readonly #timing: Timing
  readonly #log: Log
  readonly #stopping = new AbortController()
  readonly #ended: Promise<void>
  readonly #backoff: Backoff
  #startedAt: number | undefined
  #failure: { reason: string; since: number } | undefined
  #process: AgentProcess | undefined
  #port: number | undefined

  /** @param number number of the process, starting at 1 */
  constructor(folder: AgentFolder, hooks: ProcessHooks, timing: Timing, number = 1) {
    this.folder = folder
    this.#number = number
    this.#hooks = hooks
    this.#timing = timing
    this.#log = hooks.log.child({ agent: folder.name })
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    this.settled = promise
    this.#settle = resolve
    this.#backoff = new Backoff(timing.backoff)
    this.#ended = this.#keepRunning()
  }

  get pid(): number | undefined {
    return this.#process?.pid
  }

  /** The last reason why the process ended, and the first time, if it has ended repeatedly without a long run. */
  get failing(): { reason: string; since: number } | undefined {
    const runsMs = this.#startedAt === undefined ? 0 : Date.now() - this.#startedAt
    return this.#backoff.failures < failuresMin || this.#backoff.isLong(runsMs) ? undefined : this.#failure
  }

  /** Sends a message to the process if it is running. */
  send(message: object): void {
    this.#process?.send(message)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#process?.stop(this.#timing.stopLimitMs ?? 15_000)
    await this.#ended
  }

  async #keepRunning(): Promise<void> {
    const { name } = this.folder
    const number = this.#number
    const backoff = this.#backoff
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const startedAt = Date.now()
      this.#startedAt = startedAt
      const reason = await this.#runOnce().catch(
        (error: unknown) => `could not be started: ${sentenceOf(error)}`,
      )
      this.#hooks.onGone(name, !signal.aborted, number)
      this.#settle({ name, number, state: 'failed', reason })
      if (signal.aborted) return
      this.#startedAt = undefined
      const restartInMs = backoff.next(Date.now() - startedAt)
      const since = backoff.failures === 1 ? undefined : this.#failure?.since
      this.#failure = { reason, since: since ?? Date.now() }
      this.#log.warn(
        { ran_ms: Date.now() - startedAt, restart_in_ms: restartInMs },
        `agent ${name} ${reason}`,
      )
      await wait(restartInMs, undefined, { signal }).catch(() => undefined)
    }
  }

  /** Starts the process and waits until it ends. Resolves with the reason as text. */
  async #runOnce(): Promise<string> {
    const port = await this.#hooks.takePort(this.#port)
    this.#port = port === 0 ? undefined : port
    let why: string | undefined
    let hangs = false
    let own: AgentProcess | undefined
    const over = new AbortController()
    const kill = (reason: string) => {
      why ??= reason
      // A late callback must not kill the process that follows.
      own?.kill()
    }
    const startLimitMs = this.#timing.startLimitMs ?? 60_000
    const limitStart = () => setTimeout(() => kill(`did not listen within ${startLimitMs} ms`), startLimitMs)
    let startLimit = limitStart()
    await using swept = new AsyncDisposableStack()
    try {
      const introduction = new Introduction(async (identity) => {
        // The agent waits for the gateway, so its own time limit is paused.
        clearTimeout(startLimit)
        const supplies = await this.#hooks.suppliesFor(this.folder, identity)
        if (!over.signal.aborted) startLimit = limitStart()
        return supplies
      })
      let listens = false
      const onMessage = async (message: AgentMessage, from: AgentProcess) => {
        if (message.type !== 'ready') {
          await introduction.receive(message, from)
        } else if (!listens) {
          if (!this.#hooks.isAssigned(message.url, port))
            throw new Error(`it reported ${message.url}, which is not its address`)
          listens = true
          clearTimeout(startLimit)
          await this.#announce(message, introduction.identity)
          hangs = await watchForHang(message.url, over.signal, this.#timing.watchdog)
          if (hangs) own?.kill()
        } else await this.#announceChange(message, introduction.identity, port)
      }
      const launch = await this.#hooks.launch(this.folder, port)
      let sweep: Promise<void> | undefined
      const sweepOnce = () => (sweep ??= this.#hooks.isolation.ended(launch))
      swept.defer(sweepOnce)
      own = this.#spawn(launch, {
        onMessage: (message, from) => {
          onMessage(message, from).catch((error: unknown) => kill(`was refused: ${sentenceOf(error)}`))
        },
        onFlood: kill,
        // The agent's other processes may keep its output open, so they are killed before it is read to the end.
        onExit: () => void sweepOnce(),
      })
      using _limit =
        own.session === undefined ? undefined : this.#hooks.isolation.limitMemory(launch, own.session, kill)
      const exit = await own.exited
      // Health checks also fail because a process has ended by itself. Then its own end is the reason.
      return why ?? (hangs && wasKilled(exit) ? 'stopped responding to /health' : reasonOf(exit))
    } finally {
      clearTimeout(startLimit)
      over.abort()
      this.#process = undefined
      this.#hooks.releasePort(port)
    }
  }

  #spawn(
    { command, cwd, env, forks }: Launch,
    listeners: Pick<AgentProcessOptions, 'onMessage' | 'onFlood' | 'onExit'>,
  ): AgentProcess {
    const { pass } = this.#hooks
    const process = new AgentProcess({ command, cwd, env, forks, pass, ...listeners })
    this.#process = process
    // `stop` was called during the search for a port and does not know about this process.
    if (this.#stopping.signal.aborted) void process.stop(this.#timing.stopLimitMs ?? 15_000)
    return process
  }

  async #announce(message: ReadyMessage, identity: Introduction['identity']): Promise<void> {
    if (identity === undefined) throw new Error('it did not send its identity')
    const { name } = this.folder
    const number = this.#number
    const agent: ReadyAgent = { ...message, ...identity, name, number }
    await this.#hooks.onReady(agent)
    this.#log.info({ url: agent.url, agent_pid: this.pid }, `agent ${this.folder.name} is ready`)
    this.#settle({ name, number, state: 'ready', agent })
  }

  /** Registers the changed skills of a running agent. If the message is refused, the agent keeps the registered ones. */
  async #announceChange(message: ReadyMessage, identity: Introduction['identity'], port: number) {
    try {
      if (this.#hooks.isAssigned(message.url, port)) await this.#announce(message, identity)
    } catch (error) {
      this.#log.warn({ err: error }, `the changed card of agent ${this.folder.name} was refused`)
    }
  }
}

function sentenceOf(error: unknown): string {
  return error instanceof Error && error.message !== '' ? error.message : String(error)
}

/** A wrapper of an isolated process reports a signal as a code from 128 on. */
const wasKilled = ({ code, signal }: Exit) => signal !== null || (code ?? 0) >= 128

function reasonOf({ code, signal, lastLines }: Exit): string {
  const refusal = lastLines.at(-1)?.match(/^agent (cannot start: .+)/s)?.[1]
  if (refusal !== undefined) return refusal
  const how = signal === null ? `exited with code ${code ?? 'none'}` : `was terminated by ${signal}`
  return lastLines.length === 0 ? how : `${how}; its last output: ${lastLines.join(' | ')}`
}
