import { randomInt } from 'node:crypto'
import { newId } from '../../shared/methods/new-id.ts'
import { timestamp } from '../../shared/protocol/timestamp.ts'
import type { Store, TaskRecord } from '../../shared/store/store.ts'
import { ownerOf, ownersCount, taskIdOf } from './sqlite-fill.ts'

/** Microseconds for each, the median of several rounds. */
export interface Costs {
  get: number
  list: number
  claim: number
}

const rounds = 7

/**
 * The questions that a growing store must answer as fast as a small one: one task by its id, the newest 20 of an owner, and
 * the claim of a waiting task (the compare-and-set to `working`, with a lease; 16 at once).
 * @param times how many a round, fewer for a store behind a socket
 */
export async function costs(store: Store, filled: number, times: number): Promise<Costs> {
  const get = await median(times, async () => {
    const number = randomInt(filled)
    const found = await store.findTask(taskIdOf(number), ownerOf(Math.floor(number / 4)))
    if (found === undefined) throw new Error(`task ${number} is missing`)
  })
  const list = await median(Math.ceil(times / 10), async () => {
    const { items } = await store.listTasks({ owner: ownerOf(randomInt(ownersCount)), limit: 20 })
    if (items.length === 0) throw new Error('an owner has no tasks')
  })
  return { get, list, claim: await claimCost(store, Math.ceil(times / 10)) }
}

async function median(times: number, run: () => Promise<void>): Promise<number> {
  const found: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const began = performance.now()
    for (let time = 0; time < times; time += 1) await run()
    found.push(((performance.now() - began) * 1000) / times)
  }
  return middle(found)
}

async function claimCost(store: Store, times: number): Promise<number> {
  const found: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const waiting: TaskRecord[] = []
    for (let time = 0; time < times; time += 1) waiting.push(await submitted(store))
    const began = performance.now()
    await Promise.all(
      Array.from({ length: 16 }, async () => {
        for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) await claim(store, next)
      }),
    )
    found.push(((performance.now() - began) * 1000) / times)
  }
  return middle(found)
}

const middle = (all: number[]): number => all.sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0

async function submitted(store: Store): Promise<TaskRecord> {
  const [id, contextId, at] = [newId(), newId(), timestamp()]
  const parts = [{ kind: 'text' as const, text: 'hello' }]
  const record: TaskRecord = {
    id,
    contextId,
    owner: ownerOf(randomInt(ownersCount)),
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
  if (!(await store.createTask(record))) throw new Error('an id came twice')
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
  if (!(await store.commitTask(claimed))) throw new Error('a claim was lost')
}
