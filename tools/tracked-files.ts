import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'

const listMaxBytes = 16 * 1024 * 1024

/**
 * Files below `root` that git tracks and that exist, relative to `root`. Undefined when `root` is not the top of a git
 * working tree, for example in an extracted archive.
 */
export function trackedFiles(root: string): string[] | undefined {
  if (!existsSync(path.join(root, '.git'))) return undefined
  const { status, stdout } = spawnSync('git', ['ls-files', '-z'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: listMaxBytes,
  })
  if (status !== 0) return undefined
  return stdout.split('\0').filter((name) => name !== '' && existsSync(path.join(root, name)))
}
