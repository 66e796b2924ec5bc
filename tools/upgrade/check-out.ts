import { spawnSync } from 'node:child_process'
import { cpSync } from 'node:fs'
import path from 'node:path'
import { root } from '@parley/e2e/harness/parley-process'

export interface Checkout extends Disposable {
  folder: string
}

/** Checks out the commit into a new folder, with hard links to the installed dependencies. */
export function checkOut(commit: string, to: string): Checkout {
  git('worktree', 'add', '--detach', to, commit)
  const copied = spawnSync('cp', ['-al', path.join(root, 'node_modules'), path.join(to, 'node_modules')])
  if (copied.status !== 0)
    cpSync(path.join(root, 'node_modules'), path.join(to, 'node_modules'), { recursive: true })
  return { folder: to, [Symbol.dispose]: () => git('worktree', 'remove', '--force', to) }
}

function git(...args: string[]): void {
  const { status, stderr } = spawnSync('git', args, { cwd: root, encoding: 'utf8' })
  if (status !== 0) throw new Error(`git ${args.join(' ')}: ${stderr}`)
}
