import path from 'node:path'
import type { AgentLimits } from '../config.ts'
import { privateRootScript, systemPaths } from './private-root.ts'

export interface Command {
  file: string
  args: string[]
}

/** A right that an agent has only if its `settings.json` lists it in `allow`. */
export type Right = 'processes' | 'threads' | 'addons' | 'signer'

/** How the process of one agent is confined. */
export interface Confinement {
  /** The user of the agent, if it has its own. */
  uid?: number
  /** Whether the agent sees only its own processes and the paths below. `namespace` does that without root. */
  root: 'shared' | 'private' | 'namespace'
  /** Whether `prlimit` and `setpriv` are available. */
  limited: boolean
  /** The extra rights of the agent, or undefined if the permission model is not used. */
  permission: readonly Right[] | undefined
  limits: AgentLimits
  readable: readonly string[]
  writable: readonly [string, ...string[]]
  cwd: string
}

const mib = 1024 * 1024
/** What Node.js reserves beyond the memory that it uses. */
const reservedMb = 1024

/** Returns the command that runs another one confined. Each program in it replaces itself by the next one. */
export function confined(command: Command, how: Confinement): Command {
  const own = { file: command.file, args: [...permissionFlags(command, how), ...command.args] }
  const words = [...limitWords(how), ...userWords(how), own.file, ...own.args]
  const [file = own.file, ...args] = how.root === 'shared' ? words : [...rootWords(how), ...words]
  return { file, args }
}

function rootWords({ root, readable, writable, cwd }: Confinement): string[] {
  const user = root === 'namespace' ? ['--user', '--map-root-user'] : []
  // In the PID namespace of the machine, an agent could look into processes of its user that run outside its root.
  const namespaces = [...user, '--pid', '--ipc', '--fork', '--kill-child=KILL', '--mount-proc']
  const script = privateRootScript({ readable, writable, cwd })
  return ['unshare', '--mount', ...namespaces, '--', '/bin/sh', '-c', script, 'sh']
}

function limitWords({ limited, limits, uid, root }: Confinement): string[] {
  if (!limited) return []
  const { files, processes, memoryMb } = limits
  const both = (name: string, value: number) => (value === 0 ? [] : [`--${name}=${value}:${value}`])
  return [
    'prlimit',
    '--core=0:0',
    ...both('nofile', files),
    // The kernel counts the processes of a user, so without its own user an agent would be limited by all others.
    ...(uid === undefined && root !== 'namespace' ? [] : both('nproc', processes)),
    ...(memoryMb === 0 ? [] : both('data', (memoryMb + reservedMb) * mib)),
  ]
}

function userWords({ uid, limited, root }: Confinement): string[] {
  if (!limited) return []
  const user = uid === undefined ? [] : [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups']
  // Only root can give up capabilities, also the root of a namespace.
  const capabilities =
    uid === undefined && root === 'shared' ? [] : ['--inh-caps=-all', '--bounding-set=-all']
  return ['setpriv', ...user, '--no-new-privs', ...capabilities]
}

/** What programs read about their own process. Other entries would show the environment or lead back to the root. */
const ownProcess = [
  '/proc/self/stat',
  '/proc/self/status',
  '/proc/self/fd',
  '/proc/self/limits',
  '/proc/meminfo',
]

function permissionFlags({ file }: Command, how: Confinement): string[] {
  if (how.permission === undefined || file !== process.execPath) return []
  const temporary = how.root === 'shared' ? [] : ['/tmp', '/dev/shm']
  const writable = [...how.writable, ...temporary, '/dev/null']
  const readable = [...how.readable, ...systemPaths, ...ownProcess, ...writable]
  return [
    '--permission',
    ...readable.map((one) => `--allow-fs-read=${one}`),
    ...writable.map((one) => `--allow-fs-write=${one}`),
    // A thread could start without the flags of the process.
    ...(how.permission.includes('threads') ? ['--allow-worker'] : []),
    ...(how.permission.includes('processes') ? ['--allow-child-process'] : []),
    ...(how.permission.includes('addons') ? ['--allow-addons'] : []),
    '--disable-warning=SecurityWarning',
  ]
}

/** The variables that point an agent to its own folder for temporary files, caches and compiled code. */
export function folderVariables([own]: readonly [string, ...string[]]): Record<string, string> {
  const cache = path.join(own, 'cache')
  return {
    HOME: own,
    TMPDIR: path.join(own, 'tmp'),
    XDG_CACHE_HOME: cache,
    // In a shared folder, one agent could replace the code that another one runs.
    NODE_COMPILE_CACHE: path.join(cache, 'compiled'),
  }
}
