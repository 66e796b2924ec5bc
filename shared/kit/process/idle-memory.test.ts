import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const file = path.resolve('shared/kit/process/idle-memory.ts')

/**
 * A process of its own, for what it does is seen in the whole process: it fills its heap, lets go of it, and says how
 * large the heap is after a while. `work` says how the count of work goes on meanwhile.
 */
async function heapAfter(work: 'stands still' | 'goes on', dispose = false): Promise<number> {
  const program = `
    import { giveBackIdleMemory } from ${JSON.stringify(file)}
    import { getHeapStatistics } from 'node:v8'
    let worked = 0
    const giving = giveBackIdleMemory(() => worked, 200)
    let held = Array.from({ length: 100 * 16 }, (_, at) => Array.from({ length: 8192 }, (_, i) => at + i + 0.5))
    worked = held.length
    held = undefined
    if (${dispose}) giving[Symbol.dispose]()
    const going = setInterval(() => { if (${work === 'goes on'}) worked += 1 }, 20)
    await new Promise((resolve) => setTimeout(resolve, 2000))
    clearInterval(going)
    console.log(getHeapStatistics().total_heap_size)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  return Number(stdout)
}

const MiB = 1024 * 1024

test('a heap that has grown is given back once work stands still', async () => {
  expect(await heapAfter('stands still')).toBeLessThan(50 * MiB)
})

test('while work goes on, and once it is disposed, nothing is collected', async () => {
  const heaps = await Promise.all([heapAfter('goes on'), heapAfter('stands still', true)])
  for (const heap of heaps) expect(heap).toBeGreaterThan(90 * MiB)
})
