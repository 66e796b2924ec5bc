import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rm } from 'node:fs/promises'
import path from 'node:path'
import { type Confinement, confined } from './launch.ts'

export type IsolationMode = 'user' | 'namespace' | 'permission' | 'none'

/** A way to isolate agents that works on this machine. */
export interface Way extends Pick<Confinement, 'root' | 'limited'> {
  mode: IsolationMode
  /** The protections that it lacks, each with what would add it. */
  missing: string[]
}

export interface Trial {
  /** Files and folders that every agent must be able to read. */
  readable: readonly string[]
  /** A user id for the mode `user`. */
  uid: () => number
}

export const noIsolation: Way = {
  mode: 'none',
  root: 'shared',
  limited: false,
  missing: ['AGENT_ISOLATION=none: every agent can read the secrets of the gateway and of the other agents'],
}

/** Runs a command confined in this mode, and returns the reason if it fails. */
export async function tryMode(
  mode: Exclude<IsolationMode, 'none'>,
  trial: Trial,
): Promise<Way | { reason: string }> {
  if (mode === 'permission') return permissionMode(trial)
  if (process.platform !== 'linux') return { reason: 'it needs Linux' }
  const isRoot = process.getuid?.() === 0
  if (mode === 'namespace') {
    // Root keeps rights to files of the kernel even without capabilities.
    if (isRoot) return { reason: 'it needs a gateway that does not run as root' }
    const reason = await failureOf({ root: 'namespace', limited: true }, trial)
    return reason === undefined ? { mode, root: 'namespace', limited: true, missing: [] } : { reason }
  }
  if (!isRoot) return { reason: 'it needs a gateway that runs as root' }
  const uid = trial.uid()
  const privately = await failureOf({ root: 'private', limited: true, uid }, trial)
  if (privately === undefined) return { mode, root: 'private', limited: true, missing: [] }
  const openly = await failureOf({ root: 'shared', limited: true, uid }, trial)
  if (openly !== undefined) return { reason: openly }
  const missing = [
    `a private root folder per agent (${privately}): agents can read files that all users of this machine may read`,
    ...dotEnv(),
  ]
  return { mode, root: 'shared', limited: true, missing }
}

function dotEnv(): string[] {
  return existsSync('.env') ? ['agents can read .env unless its mode is 0600 (chmod 600 .env)'] : []
}

async function permissionMode(trial: Trial): Promise<Way> {
  const limited =
    process.platform === 'linux' && (await failureOf({ root: 'shared', limited: true }, trial)) === undefined
  const missing = [
    'protection of the gateway and the other agents from signals of an agent',
    'isolation of agents whose settings.json allows processes, threads or addons',
    ...(limited ? ['a limit on processes'] : ['limits on open files and processes']),
  ]
  return { mode: 'permission', root: 'shared', limited, missing }
}

const limitMs = 15_000

/** Starts a shell that checks the readable paths, confined in this way. */
async function failureOf(
  how: Pick<Confinement, 'root' | 'limited' | 'uid'>,
  { readable }: Trial,
): Promise<string | undefined> {
  const folder = await mkdtemp(path.join(trialFolder, 'parley-isolation-'))
  try {
    const script = 'for one do [ -r "$one" ] || { echo "$one cannot be read by it" >&2; exit 1; }; done'
    const checked = { file: '/bin/sh', args: ['-c', script, 'sh', ...readable] }
    const limits = { files: 0, processes: 0, memoryMb: 0 }
    const writable: Confinement['writable'] = [folder]
    await mkdir(path.join(folder, 'tmp'))
    await chmod(folder, 0o711)
    const command = confined(checked, {
      ...how,
      permission: undefined,
      limits,
      readable,
      writable,
      cwd: '/',
    })
    return await run(command.file, command.args)
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

const trialFolder = '/tmp'

function run(file: string, args: string[]): Promise<string | undefined> {
  const child = spawn(file, args, { stdio: ['ignore', 'ignore', 'pipe'], timeout: limitMs, cwd: '/' })
  let output = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    output = (output + text).slice(-2000)
  })
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) => {
      const line = output.trim().split('\n')[0] ?? ''
      if (code === 0) resolve(undefined)
      else resolve(line === '' ? `${file} failed (${signal ?? code})` : line)
    })
  })
}

/** Says in one sentence what an agent cannot do. */
export function summaryOf({ mode, root }: Way): string {
  if (mode === 'none') return 'agents are not isolated'
  const sees = root === 'shared' ? '' : ', which sees only its own files'
  if (mode === 'user') return `each agent runs as its own user${sees}`
  if (mode === 'namespace') return `each agent runs in its own namespaces${sees}`
  return 'each agent runs with the permission model of Node.js'
}
