import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { onPath } from './install-programs.ts'
import { trackedFiles } from './tracked-files.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'parley-tracked-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

test.skipIf(!onPath('git'))(
  'lint checks tracked files without downloads and deleted files (needs git)',
  () => {
    for (const name of ['a.ts', 'with space.ts', 'gone.ts', 'chart.svg'])
      writeFileSync(path.join(folder, name), '')
    git('init', '--quiet')
    git('add', 'a.ts', 'with space.ts', 'gone.ts')
    rmSync(path.join(folder, 'gone.ts'))
    expect(trackedFiles(folder)).toEqual(['a.ts', 'with space.ts'])
  },
)

test('lint checks every file outside a git working tree', () => {
  writeFileSync(path.join(folder, 'a.ts'), '')
  expect(trackedFiles(folder)).toBeUndefined()
})

function git(...args: string[]): void {
  expect(spawnSync('git', args, { cwd: folder }).status).toBe(0)
}
