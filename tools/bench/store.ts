/**
 * Tasks per second in the embedded store (create, one commit, find), both empty and with 100,000 tasks. Every write
 * waits for the disk. Ids from the server are adjacent in the indexes, but random ids from clients are not.
 *
 * The CPU time of a task's life is also compared with SQLite without the store: the same rows in transactions of the same size. The
 * encoding of bodies counts for the store only.
 */
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { openSqliteStore } from '@parley/engine/store/sqlite/store'
import type { Store, TaskRecord } from '@parley/engine/store/store'
import { newId } from '@parley/kit/database/new-id'
import { timestamp } from '@parley/wire/model/timestamp'
import { RawSqlite, type RawTask } from './sqlite/raw-tasks.ts'
import { median, quick } from './support/measure.ts'
import { checkTarget, printTable, saveResults } from './support/report.ts'

const clients = 64
const lives = quick ? 4000 : 20_000
const [pairs, livesOfPair] = quick ? [5, 3200] : [9, 12_800]
const existing = Number(process.argv[2] ?? (quick ? 10_000 : 100_000))
const owners = Array.from({ length: 100 }, () => `did:parley:bench:agent:${randomUUID()}`)
const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-bench-'))
const file = path.join(folder, 'agent.db')
const store = await openSqliteStore({ file })

await measure(2000, (owner) => life(owner, newId))
const againstRaw = await compareWithRaw()
const rows = {
  'empty store, our ids': await measure(lives, (owner) => life(owner, newId)),
  'empty store, random ids': await measure(lives, (owner) => life(owner, randomUUID)),
  [`fill to ${existing}`]: await measure(existing, fill),
  [`${existing} tasks, our ids`]: await measure(lives, (owner) => life(owner, newId)),
  [`${existing} tasks, random ids`]: await measure(lives, (owner) => life(owner, randomUUID)),
  [`${existing} tasks, our ids, one owner`]: await measure(lives, () => life(owners[0] ?? '', newId)),
  'list of 100': await measure(500, async (owner) => void (await store.listTasks({ owner, limit: 100 }))),
  'find one': await measure(50_000, async (owner, last) => void (await store.findTask(last, owner))),
}
const fileMb = Math.round(statSync(file).size / 1e6)
const rssMb = Math.round(process.memoryUsage.rss() / 1e6)
await store[Symbol.asyncDispose]()
rmSync(folder, { recursive: true })

console.log(
  `Embedded store, ${clients} clients, ${owners.length} owners, ${bodyLength()} characters per task, Node ${process.versions.node}`,
)
console.table(rows)
console.log(`File ${fileMb} MB, RSS ${rssMb} MB`)
const ratio = median(againstRaw.map(([own, raw]) => own / raw))
printTable(
  ['CPU µs per life of a task', 'median'],
  ['store', 'raw SQLite'].map((name, side) => [
    name,
    median(againstRaw.map((pair) => pair[side] ?? 0)).toFixed(1),
  ]),
)
checkTarget('life of a task in the embedded store ÷ raw SQLite, CPU', ratio)
const result = { node: process.versions.node, clients, existing, againstRaw, rows, fileMb, rssMb }
await saveResults('store', result)

async function measure(count: number, run: (owner: string, last: string) => Promise<string | void>) {
  let started = 0
  let last = ''
  const times: number[] = []
  const cpu = process.cpuUsage()
  const start = performance.now()
  const client = async () => {
    while (started < count) {
      const owner = owners[started % owners.length] ?? ''
      started += 1
      const since = performance.now()
      last = (await run(owner, last)) ?? last
      times.push(performance.now() - since)
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  const ms = performance.now() - start
  const { user, system } = process.cpuUsage(cpu)
  times.sort((a, b) => a - b)
  const at = (share: number) => Number((times[Math.floor((times.length - 1) * share)] ?? 0).toFixed(1))
  return {
    'per second': Math.round((count / ms) * 1000),
    'CPU µs/request': Math.round((user + system) / count),
    'p50 ms': at(0.5),
    'p99 ms': at(0.99),
  }
}

/** Measures a store and SQLite alternately. Both begin empty and grow equally. Resolves with pairs of CPU µs per life. */
async function compareWithRaw(): Promise<[store: number, raw: number][]> {
  using raw = new RawSqlite(path.join(folder, 'raw.db'))
  const own = await openSqliteStore({ file: path.join(folder, 'compared.db') })
  const found: [number, number][] = []
  // The first pair compiles the code.
  for (let pair = -1; pair < pairs; pair += 1) {
    const records = Array.from({ length: livesOfPair }, (_, number) =>
      record(owners[number % owners.length] ?? '', newId),
    )
    const rows = records.map((task) => rawTask(record(task.owner, newId)))
    const ofStore = await cpuMicros(async () => {
      let next = 0
      const client = async () => {
        for (let task = records[next++]; task !== undefined; task = records[next++])
          await storedLife(own, task)
      }
      await Promise.all(Array.from({ length: clients }, client))
    })
    const ofRaw = await cpuMicros(() => {
      for (let at = 0; at < rows.length; at += clients) raw.lives(rows.slice(at, at + clients))
    })
    if (pair >= 0) found.push([ofStore / livesOfPair, ofRaw / livesOfPair])
  }
  await own[Symbol.asyncDispose]()
  return found
}

async function cpuMicros(run: () => void | Promise<void>): Promise<number> {
  const before = process.cpuUsage()
  await run()
  const { user, system } = process.cpuUsage(before)
  return user + system
}

function rawTask(task: TaskRecord): RawTask {
  const { id, owner, contextId, createdAt: at, updatedAt: _, version: __, ...body } = task
  const submitted = JSON.stringify(body)
  const completed = JSON.stringify({ ...body, status: { state: 'completed', timestamp: at } })
  return { id, owner, contextId, at, submitted, completed }
}

/** Uses the store as `message/send` and one run of a fast handler do. */
async function life(owner: string, makeId: () => string): Promise<string> {
  const task = record(owner, makeId)
  await storedLife(store, task)
  return task.id
}

async function storedLife(into: Store, task: TaskRecord): Promise<void> {
  await into.createTask(task)
  await into.commitTask({ ...task, version: 2, status: { state: 'completed', timestamp: timestamp() } })
  await into.findTask(task.id, task.owner)
}

async function fill(owner: string): Promise<void> {
  await store.createTask({ ...record(owner, newId), status: { state: 'completed', timestamp: timestamp() } })
}

function record(owner: string, makeId: () => string): TaskRecord {
  const [id, contextId, now] = [makeId(), makeId(), timestamp()]
  const parts = [{ kind: 'text' as const, text: 'words '.repeat(100) }]
  return {
    id,
    contextId,
    owner,
    version: 1,
    starts: 0,
    workedMs: 0,
    createdAt: now,
    updatedAt: now,
    status: { state: 'submitted', timestamp: now },
    history: [
      { role: 'user', parts, messageId: randomUUID(), contextId, taskId: id },
      { role: 'assistant', parts, messageId: randomUUID(), contextId, taskId: id },
    ],
    artifacts: [],
    events: [],
    referenceTaskIds: [],
    acceptedOutputModes: [],
  }
}

function bodyLength(): number {
  return JSON.stringify(record('', newId)).length
}
