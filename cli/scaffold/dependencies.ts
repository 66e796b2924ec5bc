import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { version } from '@parley/kit/process/version'
import { z } from 'zod'

/** The command and the library that generated agents import. */
export const required = ['parley', '@parley/agent']

export function isInstalled(cwd: string): boolean {
  return required.every((name) => existsSync(path.join(cwd, 'node_modules', name, 'package.json')))
}

/**
 * The dependencies of a new package.json: this version or, if npm installed Parley's packages from files, those
 * files.
 */
export function parleyDependencies(cwd: string): Record<string, string> {
  const released = Object.fromEntries(required.map((name) => [name, `^${version.split('+')[0]}`]))
  return { ...released, ...installedFromFiles(cwd) }
}

const lockSchema = z.object({
  packages: z.record(z.string(), z.looseObject({ resolved: z.string().optional() })),
})

/** The Parley packages that npm installed from local files, with project-relative paths as npm writes them. */
function installedFromFiles(cwd: string): Record<string, string> {
  const file = path.join(cwd, 'node_modules', '.package-lock.json')
  try {
    const { packages } = lockSchema.parse(JSON.parse(readFileSync(file, 'utf8')))
    return Object.fromEntries(
      Object.entries(packages).flatMap(([folder, { resolved }]) => {
        const name = /^node_modules\/(parley|@parley\/[^/]+)$/.exec(folder)?.[1]
        return name !== undefined && resolved?.startsWith('file:') ? [[name, resolved]] : []
      }),
    )
  } catch {
    return {}
  }
}

/** Converts the folder's name to a valid npm package name. */
export function packageName(cwd: string): string {
  const name = path
    .basename(cwd)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 100)
  return name === '' || name === 'parley' ? 'my-agents' : name
}
