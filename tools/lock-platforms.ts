/**
 * Adds the packages of other platforms to package-lock.json (`npm run lock-platforms`). With a registry that mirrors
 * only some platforms, npm omits the others from the lock, and `npm ci` rejects such a lock. The added entries have a
 * version and a platform but no checksum: npm adds it when it can read the package.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

export interface LockedPackage {
  version?: string
  dev?: true
  optional?: true
  os?: string[]
  cpu?: string[]
  libc?: string[]
  optionalDependencies?: Record<string, string>
}

export type LockedPackages = Record<string, LockedPackage>

interface MissingPackage {
  name: string
  version: string
  /** The package that depends on it. */
  dependent: LockedPackage
}

const systems = [
  'aix',
  'android',
  'darwin',
  'freebsd',
  'linux',
  'netbsd',
  'openbsd',
  'openharmony',
  'sunos',
  'win32',
]
const processors = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'x64']
const libraries: Record<string, string> = {
  gnu: 'glibc',
  gnueabihf: 'glibc',
  musl: 'musl',
  musleabihf: 'musl',
}

/** Finds optional dependencies that have no entry in the lock. */
export function missingPackages(packages: LockedPackages): MissingPackage[] {
  const missing = new Map<string, MissingPackage>()
  for (const [folder, dependent] of Object.entries(packages)) {
    for (const [name, version] of Object.entries(dependent.optionalDependencies ?? {})) {
      if (!isLocked(packages, folder, name)) missing.set(name, { name, version, dependent })
    }
  }
  return [...missing.values()]
}

/** Whether the lock has a package that Node would resolve from this folder or the folders above it. */
function isLocked(packages: LockedPackages, folder: string, name: string): boolean {
  for (let place = folder; ; place = place.slice(0, Math.max(0, place.lastIndexOf('node_modules/') - 1))) {
    if (packages[path.posix.join(place, 'node_modules', name)] !== undefined) return true
    if (place === '') return false
  }
}

/** @throws Error if a package has no platform in its name, or has a range of versions */
export function withPlatforms(packages: LockedPackages): LockedPackages {
  const added = missingPackages(packages).map(({ name, version, dependent }): [string, LockedPackage] => {
    if (!/^\d+\.\d+\.\d+/.test(version))
      throw new Error(`${name} has the version range ${version}: run npm install`)
    const { os, cpu, libc } = platformOf(name)
    // Sorted as npm writes them, so that npm does not change the file.
    const dev = dependent.dev === true ? { dev: true as const } : {}
    const entry: LockedPackage = {
      version,
      cpu,
      ...dev,
      ...(libc.length > 0 && { libc }),
      optional: true,
      os,
    }
    return [`node_modules/${name}`, entry]
  })
  const [root = [], ...others] = Object.entries({ ...packages, ...Object.fromEntries(added) })
  others.sort(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries([root as [string, LockedPackage], ...others])
}

function platformOf(name: string): { os: string[]; cpu: string[]; libc: string[] } {
  const words = name.split(/[/-]/)
  const os = systems.filter((system) => words.includes(system))
  const cpu = processors.filter((processor) => words.includes(processor))
  const libc = words.flatMap((word) => libraries[word] ?? [])
  if (os.length !== 1 || cpu.length !== 1)
    throw new Error(`the platform of ${name} is not in its name; add the package to the lock by hand`)
  return { os, cpu, libc }
}

if (import.meta.main) {
  const file = path.join(import.meta.dirname, '..', 'package-lock.json')
  const lock = JSON.parse(readFileSync(file, 'utf8')) as { packages: LockedPackages }
  const missing = missingPackages(lock.packages)
  if (missing.length > 0)
    writeFileSync(file, `${JSON.stringify({ ...lock, packages: withPlatforms(lock.packages) }, null, 2)}\n`)
  console.log(`${missing.length} packages of other platforms added to package-lock.json`)
}
