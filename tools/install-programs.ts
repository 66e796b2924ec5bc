/**
 * Installs programs that some test suites need and npm does not provide, with apt if it runs as root on Debian or
 * Ubuntu. Otherwise it prints their names. `PARLEY_INSTALL=no` prevents it. Suites without their program are skipped.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** Maps programs to Debian packages. */
const packages = {
  'redis-server': 'redis-server',
  chromium: 'chromium',
  promtool: 'prometheus',
  strace: 'strace',
}
/** Packages whose server Debian starts after installation and at every boot. The tests start their own servers. */
const daemons = ['redis-server', 'prometheus']

/** Prints each step before it runs, and the programs that are still missing. */
export function installPrograms(): void {
  const missing = Object.keys(packages).filter((program) => !onPath(program)) as (keyof typeof packages)[]
  if (missing.length === 0) return
  const refusal = whyNot()
  if (refusal === undefined) {
    const debianPackages = missing.map((program) => packages[program])
    console.log(
      `Installing for the tests: apt-get install ${debianPackages.join(' ')} (PARLEY_INSTALL=no prevents it) …`,
    )
    if (!install(debianPackages)) console.error('apt-get could not install all of them')
    for (const name of daemons.filter((daemon) => debianPackages.includes(daemon))) keepStopped(name)
  }
  const still = missing.filter((program) => !onPath(program))
  for (const program of still)
    console.log(
      `No ${program}${refusal === undefined ? '' : `: ${refusal}`}. Install it (Debian: apt-get install ${packages[program]}) to run the suites that need it.`,
    )
}

export function onPath(program: string): boolean {
  return pathOf(program) !== undefined
}

/** The first file with this name in the folders of `PATH`. */
export function pathOf(program: string): string | undefined {
  const files = (process.env.PATH ?? '').split(path.delimiter).map((dir) => path.join(dir, program))
  return files.find((file) => existsSync(file))
}

function whyNot(): string | undefined {
  if (process.env.PARLEY_INSTALL === 'no') return 'PARLEY_INSTALL=no prevents the installation'
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'the installation needs root'
  return isDebian() && onPath('apt-get') ? undefined : 'it is only installed on Debian and Ubuntu'
}

function isDebian(): boolean {
  try {
    return /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(readFileSync('/etc/os-release', 'utf8'))
  } catch {
    return false
  }
}

/** The package lists may be old or absent, so they are updated if the installation fails without an update. */
function install(debianPackages: string[]): boolean {
  const attempt = (names: string[]) => apt('install', '-y', '--no-install-recommends', ...names)
  if (attempt(debianPackages)) return true
  apt('update')
  // One unavailable package must not prevent the others.
  return attempt(debianPackages) || debianPackages.map((name) => attempt([name])).every(Boolean)
}

/** Fails soon if there is no network. */
function apt(...args: string[]): boolean {
  const bounded = ['http', 'https'].flatMap((scheme) => ['-o', `Acquire::${scheme}::Timeout=20`])
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const stdio = ['ignore', 'ignore', 'inherit'] as const
  return spawnSync('apt-get', ['-q', ...bounded, ...args], { env, stdio: [...stdio] }).status === 0
}

/** Stops servers that the installation has started. */
function keepStopped(service: string): void {
  const [program, ...args] = existsSync('/run/systemd/system')
    ? ['systemctl', 'disable', '--now', service]
    : ['service', service, 'stop']
  spawnSync(program as string, args, { stdio: 'ignore' })
}
