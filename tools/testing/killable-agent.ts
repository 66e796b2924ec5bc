import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { TestIdentityProvider } from '@parley/agent/internal/testing/identity-provider'
import { mongodbFolder } from './mongodb-server.ts'
import { freePort } from './port.ts'

/** The variable with the folder of the compile cache. Without it, each start would strip the types of every module again. */
export const compileCache = { NODE_COMPILE_CACHE: path.join(path.dirname(mongodbFolder()), 'compiled') }
const writeCompiled = new URL('write-compiled-code.ts', import.meta.url).href
const program = fileURLToPath(new URL('../../shared/agent/server/agent-process.ts', import.meta.url))

/** An agent process that tests can kill and start repeatedly. Its data persists. */
export class KillableAgent implements AsyncDisposable {
  readonly url: string
  readonly dataDir: string
  readonly identityProvider: TestIdentityProvider
  readonly #folder: string
  readonly #port: number
  readonly #env: Record<string, string>
  readonly #isFirst: boolean
  readonly #recorder: readonly string[]
  #process: ChildProcess | undefined
  /** Output of the latest process, for analysing failures. */
  output = ''

  private constructor(
    folder: string,
    port: number,
    identityProvider: TestIdentityProvider,
    env: Record<string, string>,
    isFirst: boolean,
    recorder: readonly string[] = [],
  ) {
    this.#isFirst = isFirst
    this.#recorder = recorder
    this.#env = env
    this.#folder = folder
    this.#port = port
    this.identityProvider = identityProvider
    this.url = `http://127.0.0.1:${port}`
    this.dataDir = path.join(folder, 'data')
  }

  /**
   * @param source text of its `agent.mjs`
   * @param env additional settings
   * @param recorder a program with arguments that starts Node and keeps it as the direct child of this process
   */
  static async start(
    source: string,
    env: Record<string, string> = {},
    recorder: readonly string[] = [],
  ): Promise<KillableAgent> {
    const folder = await mkdtemp(path.join(tmpdir(), 'parley-crash-'))
    await mkdir(path.join(folder, 'agent'))
    await writeFile(path.join(folder, 'agent', 'agent.mjs'), source)
    const agent = new KillableAgent(
      folder,
      await freePort(),
      await TestIdentityProvider.start(),
      env,
      true,
      recorder,
    )
    await agent.start()
    return agent
  }

  /** Starts another process of the agent with the same settings. It must be disposed of before the first process. */
  async another(): Promise<KillableAgent> {
    const agent = new KillableAgent(this.#folder, await freePort(), this.identityProvider, this.#env, false)
    await agent.start()
    return agent
  }

  /** Process id of the latest process. */
  get pid(): number | undefined {
    return this.#process?.pid
  }

  /** Sends SIGSTOP. The process keeps its connections but does nothing. */
  freeze(): void {
    this.#process?.kill('SIGSTOP')
  }

  /** Sends SIGCONT. */
  thaw(): void {
    this.#process?.kill('SIGCONT')
  }

  /** Resolves when `/health` reports that the agent is ready. */
  async start(): Promise<void> {
    const command = [...this.#recorder, process.execPath, '--import', writeCompiled, program]
    const child = spawn(
      command[0] ?? process.execPath,
      [...command.slice(1), path.join(this.#folder, 'agent')],
      {
        stdio: ['ignore', 'pipe', 'pipe'],
        env: {
          PORT: String(this.#port),
          DATA_DIR: this.dataDir,
          OAUTH_INTROSPECTION_URL: this.identityProvider.url,
          OAUTH_CLIENT_ID: 'agent',
          OAUTH_CLIENT_SECRET: 'secret',
          LOG_LEVEL: 'warn',
          ...compileCache,
          ...this.#env,
        },
      },
    )
    this.#process = child
    this.output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream?.on('data', (chunk: Buffer) => (this.output = (this.output + chunk.toString()).slice(-20_000)))
    }
    while (!(await this.#isReady())) {
      if (child.exitCode !== null) throw new Error(`the agent exited: ${this.output}`)
      await pause(20)
    }
  }

  /** Sends SIGKILL. No handler runs and nothing is flushed. */
  async kill(): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  /** Resolves when the process has exited on its own. */
  async ended(): Promise<void> {
    const child = this.#process
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    await once(child, 'exit')
  }

  /** Sends SIGTERM. Resolves with the exit code. */
  async stop(): Promise<number | null> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined) return null
    child.kill('SIGTERM')
    await once(child, 'exit')
    return child.exitCode
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    if (!this.#isFirst) return
    await this.identityProvider[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #isReady(): Promise<boolean> {
    const signal = AbortSignal.timeout(2000)
    return fetch(`${this.url}/health`, { signal }).then(
      (response) => response.ok,
      () => false,
    )
  }
}
