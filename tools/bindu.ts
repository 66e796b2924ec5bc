/**
 * `npm run bindu`: installs the reference implementation (PyPI package `bindu`) into the cache folder, for the test
 * suites that run its agent, `(needs bindu)`. `npm test` does the same. Needs Python 3.12 or newer with venv and pip.
 */
import { spawnSync } from 'node:child_process'
import { globSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { binduFolder, binduIsThere, binduVersion } from './testing/bindu.ts'

/** Time limit for the installation, because `npm test` should not wait for a slow or unreachable registry. */
const installMaxMs = 240_000

if (!binduIsThere()) install()

/** Installs the package and prints its progress, or the reason why it cannot be installed. */
function install(): void {
  if (process.env['PARLEY_INSTALL'] === 'no') return skip('PARLEY_INSTALL=no prevents the installation')
  const python = findPython()
  if (python === undefined) return skip('it requires Python 3.12 or newer with venv and pip')
  const folder = binduFolder()
  const draft = `${folder}.${process.pid}`
  console.log(`Installing bindu ${binduVersion} into ${folder} (once, about 420 MB).`)
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
      run(path.join(draft, 'bin', 'python'), [...pip, `bindu==${binduVersion}`])
    if (!done) return skip('the installation failed')
    // The rename is atomic. Another run may already have installed the package.
    if (binduIsThere()) return
    // The Python used by the folder is no longer on this machine.
    rmSync(folder, { recursive: true, force: true })
    renameSync(draft, folder)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** Deletes unfinished installations of killed runs, 420 MB each. */
function removeDrafts(folder: string): void {
  for (const draft of globSync(`${folder}.*`))
    if (!isRunning(Number(path.extname(draft).slice(1)))) rmSync(draft, { recursive: true, force: true })
}

function isRunning(pid: number): boolean {
  try {
    return Number.isInteger(pid) && pid > 0 && process.kill(pid, 0)
  } catch (error) {
    return (error as { code?: unknown }).code === 'EPERM'
  }
}

function skip(reason: string): void {
  console.log(`The reference implementation is not installed: ${reason}. Suites that need it are skipped.`)
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
