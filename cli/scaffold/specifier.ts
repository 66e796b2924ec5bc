import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { version } from '@parley/kit/process/version'

export function isInstalled(cwd: string): boolean {
  return existsSync(path.join(cwd, 'node_modules', 'parley', 'package.json'))
}

/** What a new package.json asks for: what npm installed here (a tarball, say), else this version. */
export function parleySpecifier(cwd: string): string {
  return installedFrom(cwd) ?? `^${version.split('+')[0]}`
}

function installedFrom(cwd: string): string | undefined {
  try {
    const lock = JSON.parse(readFileSync(path.join(cwd, 'node_modules', '.package-lock.json'), 'utf8')) as {
      packages?: Record<string, { resolved?: unknown }>
    }
    const resolved = lock.packages?.['node_modules/parley']?.resolved
    // npm writes local sources relative to the project; an address of a registry is the version’s business.
    return typeof resolved === 'string' && resolved.startsWith('file:') ? resolved : undefined
  } catch {
    return undefined
  }
}

/** The folder's name as npm allows it for a package. */
export function packageName(cwd: string): string {
  const name = path
    .basename(cwd)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 100)
  return name === '' || name === 'parley' ? 'my-agents' : name
}
