import { describe, expect, test } from 'vitest'
import { pathOf } from '../install-programs.ts'
import { powercutRun } from './run.ts'

const strace = pathOf('strace')
const run = (unsafe: boolean) =>
  powercutRun(strace ?? '', { tasks: 60, clients: 4, cuts: 12, unsafe, say: () => {} })

describe.skipIf(strace === undefined)('power cut (needs strace)', () => {
  test('a power cut loses no state of a task that a client has received', { timeout: 120_000 }, async () => {
    const figures = await run(false)
    expect(figures).toMatchObject({ lost: 0, damaged: 0 })
    expect(figures.checked).toBeGreaterThan(500)
  })

  test('tasks are lost if SQLite does not wait for the disk', { timeout: 120_000 }, async () => {
    expect((await run(true)).lost).toBeGreaterThan(0)
  })
})
