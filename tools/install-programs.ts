/**
 * Programs that some suites want and npm does not bring: installed by apt where this is root of Debian or Ubuntu, named to
 * whoever runs the tests elsewhere. `PARLEY_INSTALL=no` forbids it. Suites whose program is missing are skipped.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** Program → Debian's package. */
const packages = { 'redis-server': 'redis-server', chromium: 'chromium', promtool: 'prometheus' }
/** Of these, the ones that bring a server which Debian starts at once and at every boot: the tests start their own. */
const daemons = ['redis-server', 'prometheus']

/** Says on the console what it does before it does it, and what is still missing. */
export function installPrograms(): void {
  const missing = Object.keys(packages).filter((program) => !onPath(program)) as (keyof typeof packages)[]
  if (missing.length === 0) return
  const refusal = whyNot()
  if (refusal === undefined) {
    const wanted = missing.map((program) => packages[program])
    console.log(
      `Installing for the tests: apt-get install ${wanted.join(' ')} (PARLEY_INSTALL=no forbids it) …`,
    )
    if (!install(wanted)) console.error('apt-get could not install all of them')
    for (const name of daemons.filter((daemon) => wanted.includes(daemon))) keepStopped(name)
  }
  const still = missing.filter((program) => !onPath(program))
  for (const program of still)
    console.log(
      `No ${program}${refusal === undefined ? '' : `: ${refusal}`}. Install it (Debian: apt-get install ${packages[program]}) to run the suites that need it.`,
    )
}

export function onPath(program: string): boolean {
  return (process.env.PATH ?? '').split(path.delimiter).some((dir) => existsSync(path.join(dir, program)))
}

function whyNot(): string | undefined {
  if (process.env.PARLEY_INSTALL === 'no') return 'PARLEY_INSTALL=no forbids to install it'
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'it is installed as root only'
  return isDebian() && onPath('apt-get') ? undefined : 'it is installed on Debian and Ubuntu only'
}

function isDebian(): boolean {
  try {
    return /^ID(_LIKE)?=.*\b(debian|ubuntu)\b/m.test(readFileSync('/etc/os-release', 'utf8'))
  } catch {
    return false
  }
}

/** The lists of packages may be old or absent: they are fetched where it does not work without. */
function install(wanted: string[]): boolean {
  const attempt = (names: string[]) => apt('install', '-y', '--no-install-recommends', ...names)
  if (attempt(wanted)) return true
  apt('update')
  // One that is not to be had must not keep the others away.
  return attempt(wanted) || wanted.map((name) => attempt([name])).every(Boolean)
}

/** Without a network it gives up soon. */
function apt(...args: string[]): boolean {
  const bounded = ['http', 'https'].flatMap((scheme) => ['-o', `Acquire::${scheme}::Timeout=20`])
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' }
  const stdio = ['ignore', 'ignore', 'inherit'] as const
  return spawnSync('apt-get', ['-q', ...bounded, ...args], { env, stdio: [...stdio] }).status === 0
}

/** What was installed for the tests leaves no server of its own running. */
function keepStopped(service: string): void {
  const [program, ...args] = existsSync('/run/systemd/system')
    ? ['systemctl', 'disable', '--now', service]
    : ['service', service, 'stop']
  spawnSync(program as string, args, { stdio: 'ignore' })
}
