import { randomInt } from 'node:crypto'
import type { Store, TaskRecord } from '@parley/engine/store/store'
import { newId } from '@parley/kit/database/new-id'
import { timestamp } from '@parley/wire/model/timestamp'
import { bringIntoMemory, bytesFromDisk } from '../support/file-in-memory.ts'
import { ownerOf, ownersCount, taskIdOf } from '../support/sqlite-fill.ts'

/**
 * A store with a given number of tasks. All sizes are measured in the same run, so that load on the machine affects
 * each of them.
 */
export interface Stage {
  name: string
  store: Store
  /** Tasks that `fillTasks` created. */
  filled: number
  /**
   * File of an embedded store. It is loaded into the page cache before each round, to measure the store rather than the
   * disk.
   */
  file?: string
}

/** Microseconds per call. Other processes do not affect `cpu`. */
export interface Cost {
  wall: number
  cpu: number
  /** Bytes per call that this process read from the disk. */
  fromDisk: number
}

/**
 * The queries that must not slow down as the store grows: a task by id, the newest 8 tasks of an owner with a large
 * part of all tasks, the tasks of an owner with 8, and the claim of a waiting task (compare-and-set to `working` with
 * a lease; 16 at a time).
 */
export const questions = ['get', 'list', 'list of few', 'claim'] as const
export type Question = (typeof questions)[number]
export type Costs = Record<Question, Cost>

const [rounds, page, atOnce] = [9, 8, 16]
const few = 'did:parley:bench:agent:few'

/**
 * The median of nine rounds over all sizes, after a warm-up round. @param times number of gets per round; a tenth of that
 * for the other queries @param cpuMicros CPU time of all processes involved
 */
export async function costs(
  stages: Stage[],
  times: number,
  cpuMicros: () => number,
): Promise<Record<string, Costs>> {
  const found = new Map(stages.map(({ name }) => [name, [] as Costs[]]))
  for (const { store } of stages) await someTasks(store, page, few)
  for (let round = 0; round <= rounds; round += 1) {
    // Rotates the size that is measured first, right after a pause.
    const turn = round % stages.length
    for (const stage of [...stages.slice(turn), ...stages.slice(0, turn)]) {
      const one = await oneRound(stage, times, cpuMicros)
      if (round > 0) found.get(stage.name)?.push(one)
    }
  }
  return Object.fromEntries([...found].map(([name, all]) => [name, medians(all)]))
}

async function oneRound(stage: Stage, times: number, cpuMicros: () => number): Promise<Costs> {
  const { store, file } = stage
  const fewer = Math.ceil(times / 10)
  const again = (count: number, run: () => Promise<void>) =>
    measured(count, cpuMicros, async () => {
      for (let time = 0; time < count; time += 1) await run()
    })
  const list = async (owner: string) => {
    const { items } = await store.listTasks({ owner, limit: page })
    if (items.length < page) throw new Error('an owner has less than a page of tasks')
  }
  if (file !== undefined) bringIntoMemory(file)
  const get = await again(times, () => getAny(stage))
  const ofMany = await again(fewer, () => list(ownerOf(randomInt(ownersCount))))
  const ofFew = await again(fewer, () => list(few))
  const waiting = await someTasks(store, fewer)
  const claimed = await measured(fewer, cpuMicros, async () => {
    const claimAll = async () => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) await claim(store, next)
    }
    await Promise.all(Array.from({ length: atOnce }, claimAll))
  })
  return { get, list: ofMany, 'list of few': ofFew, claim: claimed }
}

async function measured(count: number, cpuMicros: () => number, run: () => Promise<void>): Promise<Cost> {
  const [cpu, disk, began] = [cpuMicros(), bytesFromDisk(), performance.now()]
  await run()
  const wall = ((performance.now() - began) * 1000) / count
  return { wall, cpu: (cpuMicros() - cpu) / count, fromDisk: (bytesFromDisk() - disk) / count }
}

/** Sequential gets, after the same number of warm-up gets. */
export async function costOfGets(stage: Stage, times: number, cpuMicros: () => number): Promise<Cost> {
  const gets = async () => {
    for (let time = 0; time < times; time += 1) await getAny(stage)
  }
  await gets()
  return await measured(times, cpuMicros, gets)
}

async function getAny({ store, filled }: Stage): Promise<void> {
  const number = randomInt(filled)
  const found = await store.findTask(taskIdOf(number), ownerOf(Math.floor(number / 4)))
  if (found === undefined) throw new Error(`task ${number} is missing`)
}

function medians(all: Costs[]): Costs {
  const of = (question: Question, kind: keyof Cost) =>
    all.map((one) => one[question][kind]).sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0
  const entries = questions.map((name) => [
    name,
    { wall: of(name, 'wall'), cpu: of(name, 'cpu'), fromDisk: of(name, 'fromDisk') },
  ])
  return Object.fromEntries(entries) as Costs
}

async function someTasks(store: Store, count: number, owner?: string): Promise<TaskRecord[]> {
  const made: TaskRecord[] = []
  while (made.length < count) made.push(await submitted(store, owner ?? ownerOf(randomInt(ownersCount))))
  return made
}

async function submitted(store: Store, owner: string): Promise<TaskRecord> {
  const [id, contextId, at] = [newId(), newId(), timestamp()]
  const parts = [{ kind: 'text' as const, text: 'hello' }]
  const record: TaskRecord = {
    id,
    contextId,
    owner,
    version: 0,
    status: { state: 'submitted', timestamp: at },
    history: [{ role: 'user', parts, messageId: newId(), contextId, taskId: id }],
    artifacts: [],
    events: [],
    createdAt: at,
    updatedAt: at,
    starts: 0,
    workedMs: 0,
    referenceTaskIds: [],
    acceptedOutputModes: [],
  }
  if (!(await store.createTask(record))) throw new Error('duplicate id')
  return record
}

async function claim(store: Store, record: TaskRecord): Promise<void> {
  const at = timestamp()
  const status = { state: 'working' as const, timestamp: at }
  const event = {
    eventId: newId(),
    sequence: 1,
    timestamp: at,
    kind: 'status-update' as const,
    status,
    final: false,
  }
  const lease = { holder: 'bench', until: Date.now() + 30_000 }
  const claimed = { ...record, status, lease, version: 1, starts: 1, events: [event], updatedAt: at }
  if (!(await store.commitTask(claimed))) throw new Error('a claim failed')
}
