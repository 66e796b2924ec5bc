import { execFileSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import path from 'node:path'

const ours = path.join(path.dirname(import.meta.dirname), 'node_modules')

/**
 * Puts a packed parley into a project as `npm install` would, without a registry: what the package depends on is linked
 * from this clone. For tests of the package.
 */
export function unpackInto(project: string, tarball: string): void {
  const modules = path.join(project, 'node_modules')
  const bin = path.join(modules, '.bin')
  mkdirSync(path.join(modules, 'parley'), { recursive: true })
  mkdirSync(bin)
  execFileSync('tar', [
    '-xzf',
    path.resolve(tarball),
    '--strip-components=1',
    '-C',
    path.join(modules, 'parley'),
  ])
  for (const name of readdirSync(ours).filter((entry) => !entry.startsWith('.') && entry !== 'parley')) {
    symlinkSync(path.join(ours, name), path.join(modules, name))
  }
  symlinkSync('../parley/cli/bin.mjs', path.join(bin, 'parley'))
  for (const name of ['node', 'tsc']) symlinkSync(path.join(ours, '.bin', name), path.join(bin, name))
}
