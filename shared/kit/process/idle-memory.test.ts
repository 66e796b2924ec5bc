import { execFile } from 'node:child_process'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const file = path.resolve('shared/kit/process/idle-memory.ts')

/**
 * Runs a separate process, because garbage collection affects the whole process. That process fills its heap, drops
 * the data, and reports the heap size after a while. With `busy`, the work counter continues to grow. With `none`, it
 * remains at 0.
 */
async function heapAfter(
  work: 'none' | 'idle' | 'busy',
  dispose = false,
  arrays = 100 * 16,
): Promise<number> {
  const program = `
    import { releaseIdleMemory } from ${JSON.stringify(file)}
    import { getHeapStatistics } from 'node:v8'
    let worked = 0
    const giving = releaseIdleMemory(() => worked, 200)
    let held = Array.from({ length: ${arrays} }, (_, at) => Array.from({ length: 8192 }, (_, i) => at + i + 0.5))
    if (${work !== 'none'}) worked = held.length
    held = undefined
    if (${dispose}) giving[Symbol.dispose]()
    const going = setInterval(() => { if (${work === 'busy'}) worked += 1 }, 20)
    await new Promise((resolve) => setTimeout(resolve, 2000))
    clearInterval(going)
    console.log(getHeapStatistics().total_heap_size)`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', program])
  return Number(stdout)
}

const MiB = 1024 * 1024

test('the memory of a grown heap is released when work stops', async () => {
  expect(await heapAfter('idle')).toBeLessThan(50 * MiB)
})

test('the memory that the start of the process leaves is released before the first work', async () => {
  const arraysOf40MiB = 40 * 16
  expect(await heapAfter('none', false, arraysOf40MiB)).toBeLessThan(25 * MiB)
})

test('nothing is collected while work continues or after disposal', async () => {
  const heaps = await Promise.all([heapAfter('busy'), heapAfter('idle', true)])
  for (const heap of heaps) expect(heap).toBeGreaterThan(90 * MiB)
})
