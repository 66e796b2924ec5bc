import { spawnSync } from 'node:child_process'
import { existsSync, globSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

const installMaxMs = 240_000

/** A package of npm with its dependencies outside of the checkout, in the cache folder. */
export interface NodePackage {
  name: string
  version: string
  /** Size of the folder, as text. */
  size: string
}

function folderOf({ name, version }: NodePackage): string {
  const cache = process.env['XDG_CACHE_HOME'] || path.join(os.homedir(), '.cache')
  return path.join(cache, 'parley', `${name.replace('@', '').replace('/', '-')}-${version}`)
}

/** The folder of the installed package. */
export const packageFolder = (wanted: NodePackage) => path.join(folderOf(wanted), 'node_modules', wanted.name)

export const isInstalled = (wanted: NodePackage) => existsSync(packageFolder(wanted))

/**
 * Installs the package if it is not installed, without its installation scripts.
 * @returns the reason why it cannot be installed; undefined if it is installed
 */
export function installNodePackage(wanted: NodePackage): string | undefined {
  if (isInstalled(wanted)) return undefined
  if (process.env['PARLEY_INSTALL'] === 'no') return 'PARLEY_INSTALL=no prevents the installation'
  const folder = folderOf(wanted)
  const draft = `${folder}.${process.pid}`
  console.log(`Installing ${wanted.name} ${wanted.version} into ${folder} (once, about ${wanted.size}).`)
  for (const left of globSync(`${folder}.*`)) rmSync(left, { recursive: true, force: true })
  mkdirSync(draft, { recursive: true })
  try {
    writeFileSync(path.join(draft, 'package.json'), '{ "private": true }')
    const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error']
    const args = ['install', ...flags, `${wanted.name}@${wanted.version}`]
    const { status, stderr } = spawnSync('npm', args, { cwd: draft, encoding: 'utf8', timeout: installMaxMs })
    if (status !== 0) return `the installation failed: ${stderr.slice(-500)}`
    // The rename is atomic. Another run may already have installed the package.
    if (!isInstalled(wanted)) renameSync(draft, folder)
    return undefined
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}
