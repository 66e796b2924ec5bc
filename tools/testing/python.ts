import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** Time limit for an installation, because `npm test` should not wait for a slow or unreachable registry. */
const installMaxMs = 240_000

/** A virtual environment outside of the checkout, in the cache folder. */
export interface PythonEnvironment {
  /** Name of the folder; it changes with the packages. */
  name: string
  /** Requirements as pip reads them. */
  packages: readonly string[]
  /** Size of the folder, as text. */
  size: string
}

export function folderOf({ name }: PythonEnvironment): string {
  const cache = process.env['XDG_CACHE_HOME'] || path.join(os.homedir(), '.cache')
  return path.join(cache, 'parley', name)
}

/** The interpreter of the environment. */
export const pythonOf = (environment: PythonEnvironment) => path.join(folderOf(environment), 'bin', 'python')

export const isInstalled = (environment: PythonEnvironment) => existsSync(pythonOf(environment))

/**
 * Creates the environment if it does not exist, and prints its progress. Needs Python 3.12 or newer with venv and pip.
 * @returns the reason why the packages cannot be installed; undefined if they are installed
 */
export function installPython(environment: PythonEnvironment): string | undefined {
  if (isInstalled(environment)) return undefined
  if (process.env['PARLEY_INSTALL'] === 'no') return 'PARLEY_INSTALL=no prevents the installation'
  const python = findPython()
  if (python === undefined) return 'it requires Python 3.12 or newer with venv and pip'
  const folder = folderOf(environment)
  const draft = `${folder}.${process.pid}`
  console.log(`Installing ${environment.name} into ${folder} (once, about ${environment.size}).`)
  mkdirSync(path.dirname(folder), { recursive: true })
  removeDrafts(folder)
  try {
    const pip = [
      '-m',
      'pip',
      'install',
      '--quiet',
      '--disable-pip-version-check',
      '--no-input',
      '--retries=1',
      '--timeout=10',
    ]
    const done =
      run(python, ['-m', 'venv', draft]) &&
      run(path.join(draft, 'bin', 'python'), [...pip, ...environment.packages])
    if (!done) return 'the installation failed'
    // The rename is atomic. Another run may already have installed the packages.
    if (isInstalled(environment)) return undefined
    // The Python used by the folder is no longer on this machine.
    rmSync(folder, { recursive: true, force: true })
    renameSync(draft, folder)
    return undefined
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** Deletes unfinished installations of killed runs, up to 420 MB each. */
function removeDrafts(folder: string): void {
  for (const draft of globSync(`${folder}.*`))
    if (!isRunning(Number(path.extname(draft).slice(1)))) rmSync(draft, { recursive: true, force: true })
}

function isRunning(pid: number): boolean {
  try {
    return Number.isInteger(pid) && pid > 0 && process.kill(pid, 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

function findPython(): string | undefined {
  const pyenv = globSync(path.join(os.homedir(), '.pyenv/versions/3.1[2-9]*/bin/python3'))
  const check = 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))'
  return ['python3.12', 'python3.13', 'python3', ...pyenv].find(
    (program) => spawnSync(program, ['-c', check], { stdio: 'ignore' }).status === 0,
  )
}

function run(program: string, args: string[]): boolean {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', timeout: installMaxMs })
  if (status !== 0) console.log(`${stdout}${stderr}`.slice(-2000))
  return status === 0
}
