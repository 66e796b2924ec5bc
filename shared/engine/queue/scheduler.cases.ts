import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Job, Scheduler, Slot } from './scheduler.ts'

/** Work that the test starts and ends. */
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
      if (end === undefined) throw new Error(`${taskId} is not running`)
      ends.delete(taskId)
      end(again)
    },
  }
}

export function jobOf(taskId: string, owner = 'alice', version = 0): Job {
  return { taskId, version, owner }
}

export async function placeOf(scheduler: Scheduler, owner = 'alice'): Promise<Slot> {
  const place = await scheduler.reserve(owner, { all: 1000, ofOwner: 500 })
  if (typeof place === 'string') throw new Error(place)
  return place
}

/** Returns the refusal of a reservation, or undefined if the reservation succeeds. */
export async function refusalOf(scheduler: Scheduler): Promise<unknown> {
  try {
    const place = await placeOf(scheduler)
    place.release()
    return undefined
  } catch (error) {
    return error
  }
}

export async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await wait(5)
}

/** The conformance test cases of the port. Each adapter runs them. */
export function schedulerCases(name: string, open: (concurrency: number) => Promise<Scheduler>): void {
  test(`${name}: runs as many tasks concurrently as there are slots, lets the others wait, and runs each task once`, async () => {
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

  test(`${name}: one caller's many tasks do not delay the tasks of another caller`, async () => {
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

  test(`${name}: runs one caller's tasks in the order of their arrival`, async () => {
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

  test(`${name}: runs a task again if a later version of it is queued after a pause`, async () => {
    await using scheduler = await open(1)
    const work = heldWork(scheduler)
    work.start()
    scheduler.enqueue(jobOf('a'))
    await until(() => work.begun.length === 1)
    // The answer may arrive before the run that paused the task ends.
    scheduler.enqueue(jobOf('a', 'alice', 3))
    work.end('a')
    await until(() => work.begun.length === 2)
    expect(work.begun).toEqual(['a', 'a'])
  })

  test(`${name}: a reserved place counts as waiting until it is used or released`, async () => {
    await using scheduler = await open(1)
    const [used, released] = [await placeOf(scheduler), await placeOf(scheduler)]
    expect(scheduler.waiting).toBe(2)
    released.release()
    released.release()
    scheduler.enqueue(jobOf('a'), used)
    expect(scheduler.waiting).toBe(1)
  })

  test(`${name}: reserves places up to the limits per owner and in total, even for concurrent requests`, async () => {
    await using scheduler = await open(1)
    const room = { all: 5, ofOwner: 3 }
    const claims = async (owner: string, count: number) =>
      Promise.all(Array.from({ length: count }, () => scheduler.reserve(owner, room)))
    const alices = await claims('alice', 5)
    expect(alices.slice(3)).toEqual(['owner_full', 'owner_full'])
    const bobs = await claims('bob', 3)
    expect(bobs.slice(2)).toEqual(['full'])
    const places = [...alices, ...bobs].filter((place) => typeof place !== 'string')
    for (const [i, place] of places.entries())
      scheduler.enqueue(jobOf(`t${i}`, i < 3 ? 'alice' : 'bob'), place)
    await until(() => scheduler.waiting === 5)
    expect(await claims('alice', 1)).toEqual(['owner_full'])
    expect(await claims('carol', 1)).toEqual(['full'])
    const work = heldWork(scheduler)
    work.start()
    for (let n = 1; n <= 5; n += 1) {
      await until(() => work.begun.length === n)
      work.end(work.begun[n - 1] as string)
    }
    await until(() => scheduler.waiting === 0)
    expect((await claims('alice', 4)).filter((place) => typeof place === 'string')).toEqual(['owner_full'])
  })

  test(`${name}: a discarded job does not run and frees its place immediately, while a running job continues`, async () => {
    await using scheduler = await open(1)
    const room = { all: 3, ofOwner: 3 }
    for (const taskId of ['a', 'b', 'c']) scheduler.enqueue(jobOf(taskId))
    await until(() => scheduler.waiting === 3)
    expect(await scheduler.reserve('alice', room)).toBe('owner_full')
    for (const taskId of ['a', 'c']) scheduler.discard(jobOf(taskId))
    scheduler.discard(jobOf('unknown', 'bob'))
    const claimed: Slot[] = []
    while (claimed.length < 2) {
      const place = await scheduler.reserve('alice', room)
      if (typeof place !== 'string') claimed.push(place)
    }
    expect(await scheduler.reserve('alice', room)).toBe('owner_full')
    for (const place of claimed) place.release()
    const work = heldWork(scheduler)
    work.start()
    await until(() => work.begun.length === 1)
    scheduler.discard(jobOf('b'))
    scheduler.enqueue(jobOf('d'))
    await wait(50)
    work.end('b')
    await until(() => work.begun.length === 2)
    expect(work.begun).toEqual(['b', 'd'])
  })

  test(`${name}: jobs that are discarded while they enter the queue leave it`, async () => {
    await using scheduler = await open(1)
    const jobs = Array.from({ length: 60 }, (_, i) => jobOf(`t${i}`, `owner ${i % 20}`))
    for (const job of jobs) scheduler.enqueue(job)
    for (const job of jobs) scheduler.discard(job)
    await expect.poll(() => scheduler.waiting).toBe(0)
  })

  test(`${name}: the owners of waiting tasks take turns`, async () => {
    await using scheduler = await open(1)
    const jobs = ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2'].map((id) => jobOf(id, id.slice(0, 1)))
    for (const [i, job] of jobs.entries()) {
      scheduler.enqueue(job)
      await until(() => scheduler.waiting > i)
    }
    await wait(50)
    const work = heldWork(scheduler)
    work.start()
    for (let n = 1; n <= jobs.length; n += 1) {
      await until(() => work.begun.length === n)
      // The owner's next job is promoted to the queue in the meantime.
      await wait(30)
      work.end(work.begun[n - 1] as string)
    }
    expect(work.begun).toEqual(['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4'])
  })

  test(`${name}: restore enqueues each lost job exactly once`, async () => {
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

  test(`${name}: drain starts no further jobs, and resolves when the running jobs have ended or the signal aborts`, async () => {
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
