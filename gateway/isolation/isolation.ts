import { existsSync, realpathSync } from 'node:fs'
import { chmod, mkdir, open, realpath, rm } from 'node:fs/promises'
import path from 'node:path'
import type { Log } from '@parley/kit/process/log'
import { readSecretFile } from '@parley/kit/process/secret-file'
import { ConfigError } from '@parley/kit/process/settings'
import type { IsolationSettings } from '../config.ts'
import { AgentUsers, handOver, killAllOf } from './agent-users.ts'
import { Egress } from './egress.ts'
import { type Command, confined, folderVariables, type Right } from './launch.ts'
import { MemoryWatch } from './memory-watch.ts'
import { type IsolationMode, noIsolation, summaryOf, tryMode, type Way } from './modes.ts'
import { readablePaths } from './readable-paths.ts'

/** What the isolation needs to know about an agent. */
export interface IsolatedAgent {
  name: string
  folder: string
  settings: { allow: readonly Right[]; read: readonly string[]; egress?: readonly string[] | undefined }
}

export interface IsolationOptions {
  settings: IsolationSettings
  dataDir: string
  agentsDir: string
  /** Returns the command that runs an agent unconfined. */
  command: (folder: string) => Command
  /** Destinations that every agent needs, as `host:port`. */
  needed?: readonly string[]
  /** Files of certificate authorities that every agent may read. */
  authorities?: readonly string[]
  log: Log
}

/** The data folder of an agent and, if it is elsewhere, the folder of its database. */
export type AgentFolders = readonly [data: string, ...others: string[]]

/** A command that is ready to be started. */
export interface Launch {
  command: Command
  env: NodeJS.ProcessEnv
  cwd: string
  /** Whether the agent is a child of the started process, which ignores signals. */
  forks: boolean
  /** The user of the agent, if it has its own. */
  uid: number | undefined
}

/** Confines the processes of supervised agents with what this machine offers. */
export class Isolation implements AsyncDisposable {
  readonly mode: IsolationMode
  /** How agents are isolated, in one sentence. */
  readonly summary: string
  /** The protections that this machine does not offer, and what would add them. */
  readonly missing: string[]
  readonly #options: IsolationOptions
  readonly #way: Way
  readonly #users: AgentUsers | undefined
  readonly #memory = new MemoryWatch()
  #egress: Promise<Egress | { reason: string }> | undefined
  /** The processes of each user that have been prepared and have not ended. */
  readonly #claims = new Map<number, { processes: number; done: Promise<void> }>()

  private constructor(options: IsolationOptions, way: Way, users?: AgentUsers) {
    this.#options = options
    this.#way = way
    this.#users = users
    this.mode = way.mode
    this.summary = summaryOf(way)
    this.missing = [...way.missing]
  }

  /** Chooses the mode. @throws ConfigError if AGENT_ISOLATION names a mode that this machine does not offer */
  static async open(options: IsolationOptions): Promise<Isolation> {
    const { settings, dataDir, command } = options
    if (settings.mode === 'none') return new Isolation(options, noIsolation)
    const agentsDir = existsSync(options.agentsDir) ? realpathSync(options.agentsDir) : options.agentsDir
    const users = AgentUsers.open(dataDir, settings.uids)
    const entry = entryOf(command(agentsDir))
    const readable = readablePaths({ entry, folder: agentsDir, read: [], dataDir })
    const trial = { readable, uid: () => users.idOf('') }
    const reasons: string[] = []
    for (const mode of ['user', 'namespace', 'permission'] as const) {
      if (settings.mode !== 'auto' && settings.mode !== mode) continue
      const way = await tryMode(mode, trial)
      if ('mode' in way) {
        const missing = [...reasons, ...way.missing]
        if (mode === 'permission') process.on('SIGUSR1', ignored)
        return new Isolation(options, { ...way, missing }, mode === 'user' ? users : undefined)
      }
      reasons.push(`isolation mode ${mode}: ${way.reason}`)
    }
    throw new ConfigError([
      `AGENT_ISOLATION=${settings.mode} is not available on this machine (${reasons.join('; ')}). docs/guides/isolation.md lists what each mode needs; AGENT_ISOLATION=auto chooses one that works.`,
    ])
  }

  /**
   * Creates the folders of an agent, gives them to its user and returns the confined command. Each call has to be followed
   * by one of `ended`.
   */
  async prepare(
    agent: IsolatedAgent,
    { env, folders }: { env: NodeJS.ProcessEnv; folders: AgentFolders },
  ): Promise<Launch> {
    const { settings, dataDir } = this.#options
    for (const folder of folders) await mkdir(folder, { recursive: true, mode: 0o700 })
    if (this.mode === 'none') {
      const command = this.#options.command(agent.folder)
      return { command, env, cwd: agent.folder, forks: false, uid: undefined }
    }
    // Links on the way to the folder would have to be readable too.
    const folder = await realpath(agent.folder)
    const command = this.#options.command(folder)
    for (const name of ['tmp', 'cache'])
      await mkdir(path.join(folders[0], name), { recursive: true, mode: 0o700 })
    const { authorities = [] } = this.#options
    const read = [...agent.settings.read, ...authorities, env['NODE_EXTRA_CA_CERTS'] ?? []].flat()
    const readable = readablePaths({ entry: entryOf(command), folder, read, dataDir })
    const uid = this.#users?.idOf(agent.name)
    const signer = await signerVariable(agent, env['PAYMENT_SIGNER_KEY_FILE'], folders[0], uid)
    await this.#limitEgress(agent, uid)
    if (uid !== undefined) await this.#claim(uid, folders)
    const how = {
      ...this.#way,
      ...(uid !== undefined && { uid }),
      permission: agent.settings.allow,
      limits: settings.limits,
      readable,
      writable: folders,
      cwd: folder,
    }
    return {
      command: confined(command, how),
      env: { ...env, ...folderVariables(folders), ...signer },
      cwd: how.root === 'shared' ? folder : '/',
      forks: how.root !== 'shared',
      uid,
    }
  }

  /** Applies an egress list that has changed since the process was prepared. @throws Error if the rules cannot be applied */
  async updateEgress(agent: IsolatedAgent): Promise<void> {
    if (this.mode !== 'none') await this.#limitEgress(agent, this.#users?.idOf(agent.name))
  }

  async #limitEgress({ name, settings }: IsolatedAgent, uid: number | undefined): Promise<void> {
    const { dataDir, needed = [], log } = this.#options
    const destinations = settings.egress ?? this.#options.settings.egress
    if (destinations === undefined) return
    const unavailable = { reason: 'it needs the isolation mode user' }
    this.#egress ??=
      uid === undefined ? Promise.resolve(unavailable) : Egress.open({ dataDir, always: needed, log })
    const egress = await this.#egress
    if (egress instanceof Egress && uid !== undefined) return egress.limit(uid, destinations)
    const text = `the egress list of ${name} (${'reason' in egress ? egress.reason : unavailable.reason}): it can connect to every address`
    if (!this.missing.includes(text)) this.missing.push(text)
  }

  /** Removes the rules for connections and the listener for signals. */
  async [Symbol.asyncDispose](): Promise<void> {
    process.off('SIGUSR1', ignored)
    const egress = await this.#egress
    if (egress instanceof Egress) await egress[Symbol.asyncDispose]()
  }

  /** Counts a process of the user. The first one hands the folders over, and the others wait for it. */
  async #claim(uid: number, folders: AgentFolders): Promise<void> {
    const claim = this.#claims.get(uid) ?? { processes: 0, done: this.#handOver(uid, folders) }
    this.#claims.set(uid, claim)
    claim.processes += 1
    await claim.done
  }

  async #handOver(uid: number, folders: AgentFolders): Promise<void> {
    // A gateway that was killed may have left processes.
    if (!(await killAllOf(uid)))
      throw new Error(
        `processes of its user ${uid} could not be ended: end them ("pkill -KILL -U ${uid}"), and check its code`,
      )
    for (const folder of folders) await handOver(folder, uid)
    if (this.#way.root === 'private') return
    // Agents must reach their own folder, but not list the folders above it.
    for (const folder of folders) await chmod(path.dirname(folder), 0o711)
    await chmod(this.#options.dataDir, 0o711)
  }

  /**
   * Limits the memory of all processes in a session.
   * @param onExceeded called with a sentence when the agent uses too much memory
   */
  limitMemory(
    { uid }: Launch,
    session: number,
    onExceeded: (reason: string) => void,
  ): Disposable | undefined {
    const { memoryMb } = this.#options.settings.limits
    if (memoryMb === 0 || process.platform !== 'linux' || this.mode === 'none') return undefined
    const exceeded = (usedMb: number) =>
      onExceeded(`exceeded its memory limit of ${memoryMb} MiB (AGENT_MEMORY_MAX_MB) with ${usedMb} MiB`)
    return this.#memory.watch({ session, uid, limitMb: memoryMb, onExceeded: exceeded })
  }

  /** Kills what an agent left behind when the last of its processes has ended. */
  async ended({ uid }: Launch): Promise<void> {
    const claim = uid === undefined ? undefined : this.#claims.get(uid)
    if (uid === undefined || claim === undefined) return
    claim.processes -= 1
    if (claim.processes > 0) return
    this.#claims.delete(uid)
    await killAllOf(uid)
  }
}

/**
 * Without a listener, SIGUSR1 makes Node.js listen for a debugger, with which an agent that can send signals would run
 * code in the gateway.
 */
function ignored(): void {}

/** Returns the first argument that is not an option for Node.js. */
function entryOf({ file, args }: Command): string {
  return args.find((one) => !one.startsWith('-')) ?? file
}

/** An agent that may sign payments receives a copy of the key file, because it cannot read files of the gateway. */
async function signerVariable(
  { folder, settings }: IsolatedAgent,
  file: string | undefined,
  data: string,
  uid: number | undefined,
): Promise<{ PAYMENT_SIGNER_KEY_FILE?: string | undefined }> {
  const copy = path.join(data, 'payment-signer.key')
  await rm(copy, { force: true, recursive: true })
  if (file === undefined) return {}
  if (!settings.allow.includes('signer')) return { PAYMENT_SIGNER_KEY_FILE: undefined }
  const key = await readSecretFile(path.resolve(folder, file))
  // The agent may own the folder and have a running process, so an existing file or link must not be opened.
  await using created = await open(copy, 'wx', 0o600)
  await created.writeFile(key)
  if (uid !== undefined) await created.chown(uid, uid)
  return { PAYMENT_SIGNER_KEY_FILE: copy }
}
