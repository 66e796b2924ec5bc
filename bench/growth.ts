/**
 * How cost grows with the number of tasks: tasks/get, tasks/list and the claim of a task at the store, with 1 thousand, 100
 * thousand and 2 million tasks in the embedded store (BENCH_SQLITE_TASKS), and with 1 and 200 thousand in a MongoDB-compatible
 * server (BENCH_MONGODB_TASKS; none: leave it out). Flat within 2 × is the promise. The tasks are written past the store.
 */
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { agentPart, migrate } from '../shared/migration/migrate.ts'
import { openMongodbStore } from '../shared/store/mongodb.ts'
import { openSqliteStore } from '../shared/store/sqlite.ts'
import { mongodbKind, startMongodb } from '../shared/testing/mongodb-server.ts'
import { type Costs, costs } from './support/growing-store.ts'
import { machine } from './support/machine.ts'
import { plansOf } from './support/mongodb-plans.ts'
import { expectAtMost } from './support/report.ts'
import { fillTasks } from './support/sqlite-fill.ts'

const counts = (name: string, usual: string) =>
  (process.env[name] ?? usual).split(',').filter(Boolean).map(Number)
const sqliteCounts = counts('BENCH_SQLITE_TASKS', '1000,100000,2000000')
const mongodbCounts = mongodbKind() === undefined ? [] : counts('BENCH_MONGODB_TASKS', '1000,200000')
const root = path.dirname(import.meta.dirname)
const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-bench-growth-'))
const agentId = 'bench'

try {
  const sqlite = sqliteCounts.length === 0 ? undefined : await embedded()
  const mongodb = mongodbCounts.length === 0 ? undefined : await shared()
  const result = { machine: machine(), sqlite, mongodb }
  writeFileSync(path.join(root, 'bench', 'results', 'growth.json'), `${JSON.stringify(result, null, 2)}\n`)
} finally {
  rmSync(folder, { recursive: true })
}

/** One file, that grows from stage to stage. */
async function embedded(): Promise<Record<string, Costs>> {
  const file = path.join(folder, 'agent.db')
  const found: Record<string, Costs> = {}
  let filled = 0
  for (const count of sqliteCounts) {
    await (await openSqliteStore({ file }))[Symbol.asyncDispose]()
    fillTasks(file, filled, count)
    filled = count
    await using store = await openSqliteStore({ file })
    found[`${count} tasks`] = await costs(store, count, 5000)
  }
  console.log(
    `Embedded store, microseconds; the file has ${Math.round(statSync(file).size / 1e6)} MB at last`,
  )
  show(found)
  rmSync(file)
  return found
}

/** A database of its own for each stage, filled as `parley migrate` does it. */
async function shared() {
  await using server = await startMongodb()
  const found: Record<string, Costs> = {}
  let plans: Record<string, string> = {}
  for (const count of mongodbCounts) {
    const url = server.newUrl()
    const file = path.join(folder, `${count}.db`)
    await (await openSqliteStore({ file }))[Symbol.asyncDispose]()
    fillTasks(file, 0, count)
    await migrate([agentPart({ name: 'bench', agentId, file })], { url })
    rmSync(file)
    const asked: Record<string, unknown>[] = []
    await using store = await openMongodbStore({ url, agentId, onCommand: (one) => void asked.push(one) })
    found[`${count} tasks`] = await costs(store, count, 300)
    plans = await plansOf(url, asked)
  }
  console.log(`\n${server.kind}, microseconds; a round trip is in each`)
  show(found)
  console.log('Explained, with the most tasks:')
  console.table(plans)
  return { server: server.kind, found, plans }
}

function show(found: Record<string, Costs>): void {
  const rounded = (one: Costs) =>
    Object.fromEntries(Object.entries(one).map(([name, cost]) => [name, Math.round(cost)]))
  console.table(Object.fromEntries(Object.entries(found).map(([name, one]) => [name, rounded(one)])))
  const [first, last] = [Object.values(found)[0], Object.values(found).at(-1)]
  if (first === undefined || last === undefined) return
  for (const name of ['get', 'list', 'claim'] as const) {
    expectAtMost(`${name}: most tasks ÷ fewest`, last[name] / first[name], 2)
  }
}
