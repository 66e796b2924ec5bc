import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Job, Scheduler } from './scheduler.ts'

/** Runs what it is given when the test says so. */
export function heldWork(scheduler: Scheduler) {
  const begun: string[] = []
  const ends = new Map<string, (again?: number) => void>()
  return {
    begun,
    start: () =>
      scheduler.start((job) => {
        begun.push(job.taskId)
        return new Promise((resolve) => ends.set(job.taskId, resolve))
      }),
    end: (taskId: string, again?: number) => {
      const end = ends.get(taskId)
      if (end === undefined) throw new Error(`${taskId} does not run`)
      ends.delete(taskId)
      end(again)
    },
  }
}

export function jobOf(taskId: string, owner = 'alice', version = 0): Job {
  return { taskId, version, owner }
}

export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await wait(5)
}

/** The promises of the port, over one adapter. */
export function schedulerCases(name: string, open: (concurrency: number) => Promise<Scheduler>): void {
  test(`${name}: as many tasks run at once as there are places, the others wait, each runs once`, async () => {
    await using scheduler = await open(2)
    const work = heldWork(scheduler)
    work.start()
    for (const taskId of ['a', 'b', 'c', 'd']) scheduler.enqueue(jobOf(taskId))
    await until(() => work.begun.length === 2)
    expect(scheduler.active).toBe(2)
    for (const n of [3, 4]) {
      work.end(work.begun[n - 3] as string)
      await until(() => work.begun.length === n)
    }
    expect(work.begun.toSorted((a, b) => a.localeCompare(b))).toEqual(['a', 'b', 'c', 'd'])
  })

  test(`${name}: many tasks of one caller do not hold up another's`, async () => {
    await using scheduler = await open(1)
    for (let i = 0; i < 50; i += 1) scheduler.enqueue(jobOf(`a${i}`))
    await until(() => scheduler.waiting === 50)
    scheduler.enqueue(jobOf('b', 'bob'))
    const work = heldWork(scheduler)
    work.start()
    for (let ended = 0; !work.begun.includes('b'); ended += 1) {
      expect(ended).toBeLessThan(10)
      await until(() => work.begun.length > ended)
      if (work.begun[ended] !== 'b') work.end(work.begun[ended] as string)
    }
  })

  test(`${name}: the tasks of one caller run in the order in which they came`, async () => {
    await using scheduler = await open(1)
    const work = heldWork(scheduler)
    const ids = Array.from({ length: 20 }, (_, i) => `t${i}`)
    for (const id of ids) {
      scheduler.enqueue(jobOf(id))
      await until(() => scheduler.waiting > 0)
    }
    work.start()
    for (const [i, id] of ids.entries()) {
      await until(() => work.begun.length === i + 1)
      work.end(id)
    }
    expect(work.begun).toEqual(ids)
  })

  test(`${name}: a task that waits again after a pause, in a later version, runs again`, async () => {
    await using scheduler = await open(1)
    const work = heldWork(scheduler)
    work.start()
    scheduler.enqueue(jobOf('a'))
    await until(() => work.begun.length === 1)
    // The answer may come before the end of the run that asked.
    scheduler.enqueue(jobOf('a', 'alice', 3))
    work.end('a')
    await until(() => work.begun.length === 2)
    expect(work.begun).toEqual(['a', 'a'])
  })

  test(`${name}: a place in the line counts as waiting until it is used or released`, async () => {
    await using scheduler = await open(1)
    const [used, released] = [scheduler.claimPlace(), scheduler.claimPlace()]
    expect(scheduler.waiting).toBe(2)
    released.release()
    released.release()
    scheduler.enqueue(jobOf('a'), used)
    expect(scheduler.waiting).toBe(1)
  })

  test(`${name}: restore enqueues what the line has lost, and nothing twice`, async () => {
    await using scheduler = await open(1)
    scheduler.enqueue(jobOf('a'))
    await until(() => scheduler.waiting === 1)
    await wait(50)
    await scheduler.restore([jobOf('a'), jobOf('b'), jobOf('c', 'bob')])
    const work = heldWork(scheduler)
    work.start()
    for (const n of [1, 2, 3]) {
      await until(() => work.begun.length === n)
      work.end(work.begun[n - 1] as string)
    }
    await wait(50)
    expect(work.begun.toSorted((a, b) => a.localeCompare(b))).toEqual(['a', 'b', 'c'])
  })

  test(`${name}: drain takes nothing up any more, and resolves when what is under way has ended, or with the signal`, async () => {
    await using scheduler = await open(1)
    const work = heldWork(scheduler)
    work.start()
    for (const taskId of ['a', 'b']) scheduler.enqueue(jobOf(taskId))
    await until(() => work.begun.length === 1)
    await expect(scheduler.ping()).resolves.toBeUndefined()
    await scheduler.drain(AbortSignal.timeout(1))
    expect([scheduler.active, scheduler.running]).toEqual([1, false])
    const drained = scheduler.drain(new AbortController().signal)
    work.end(work.begun[0] as string)
    await drained
    await wait(50)
    expect([work.begun.length, scheduler.active]).toEqual([1, 0])
    await expect(scheduler.ping()).rejects.toThrow('not running')
  })
}
