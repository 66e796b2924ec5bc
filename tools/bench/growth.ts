/**
 * Cost by number of tasks: tasks/get, tasks/list and the claim of a task in the store, with 1 thousand, 100 thousand
 * and 2 million tasks in the embedded store (BENCH_SQLITE_TASKS; also tasks/get over HTTP), and with 1 and 200
 * thousand in a MongoDB-compatible server (BENCH_MONGODB_TASKS; skipped if empty). Costs must stay within a factor of 2,
 * in time and in CPU time, with the file in the page cache. The cost of a get that reads from the disk is also printed.
 * The tasks are written directly to the database. BENCH_QUICK=yes uses a tenth of the largest size.
 */
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { openMongodbStore } from '@parley/engine/store/mongodb/store'
import { openSqliteStore } from '@parley/engine/store/sqlite/store'
import { mongodbKind, startMongodb } from '../testing/mongodb-server.ts'
import { type FilledAgent, fileOf, requestFigures } from './growth/growing-agent.ts'
import {
  type Cost,
  type Costs,
  costOfGets,
  costs,
  type Question,
  questions,
  type Stage,
} from './growth/growing-store.ts'
import { fillMongodb } from './growth/mongodb-fill.ts'
import { plansOf, sorts } from './growth/mongodb-plans.ts'
import { dropFromMemory } from './support/file-in-memory.ts'

import { cpuByProgram } from './support/process-tree.ts'
import { expectAtMost, printFigures, saveResults } from './support/report.ts'
import { fillTasks } from './support/sqlite-fill.ts'

const quick = process.env['BENCH_QUICK'] === 'yes'
const counts = (name: string, usual: string) =>
  (process.env[name] ?? usual).split(',').filter(Boolean).map(Number)
const sqliteCounts = counts('BENCH_SQLITE_TASKS', quick ? '1000,200000' : '1000,100000,2000000')
const mongodbCounts =
  mongodbKind() === undefined ? [] : counts('BENCH_MONGODB_TASKS', quick ? '1000,20000' : '1000,200000')
const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-bench-growth-'))
const agentId = 'bench'

try {
  const sqlite = sqliteCounts.length === 0 ? undefined : await embedded()
  const mongodb = mongodbCounts.length === 0 ? undefined : await shared()
  await saveResults('growth', { sqlite, mongodb })
} finally {
  rmSync(folder, { recursive: true })
}

/** Measures the embedded store, with one file per size, as in an agent's folder. */
async function embedded() {
  const agents: FilledAgent[] = sqliteCounts.map((filled) => {
    const dataDir = path.join(folder, String(filled))
    mkdirSync(dataDir)
    return { name: `${filled} tasks`, dataDir, filled }
  })
  const stores = await storeCosts(agents)
  const fromDisk = await costFromDisk(agents.at(-1))
  const requests = await requestFigures([agents[0], agents.at(-1)].filter((agent) => agent !== undefined))
  console.log('tasks/get over HTTP:')
  printFigures(requests)
  const [first, last] = Object.values(requests).map(({ cpuMicrosPerRequest }) => cpuMicrosPerRequest)
  if (first !== undefined && last !== undefined)
    expectAtMost('tasks/get over HTTP: most tasks ÷ fewest, CPU time', last / first, 2)
  return { stores, fromDisk, requests }
}

function ours(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

async function storeCosts(agents: FilledAgent[]): Promise<Record<string, Costs>> {
  await using stack = new AsyncDisposableStack()
  const stages: Stage[] = []
  let file = ''
  for (const agent of agents) {
    file = fileOf(agent)
    await (await openSqliteStore({ file }))[Symbol.asyncDispose]()
    fillTasks(file, 0, agent.filled)
    stages.push({
      name: agent.name,
      store: stack.use(await openSqliteStore({ file })),
      filled: agent.filled,
      file,
    })
  }
  const found = await costs(stages, 5000, ours)
  const megabytes = Math.round(statSync(file).size / 1e6)
  console.log(`Embedded store, microseconds of time and of CPU time; largest file ${megabytes} MB`)
  show(found)
  const read = Math.max(...Object.values(found).map(({ get }) => get.fromDisk))
  console.log(
    `Read from the disk per get: at most ${Math.round(read)} bytes; 0 when the files fit into memory`,
  )
  judge(found, questions)
  return found
}

/** Measures a get with a cold page cache, as after a start or with a file larger than the memory. */
async function costFromDisk(agent: FilledAgent | undefined): Promise<Cost | undefined> {
  if (agent === undefined || !dropFromMemory(fileOf(agent))) return undefined
  await using store = await openSqliteStore({ file: fileOf(agent) })
  const cost = await costOfGets({ ...agent, store }, 2000, ours)
  const [wall, cpu, bytes] = [cost.wall, cost.cpu, cost.fromDisk].map(Math.round)
  console.log(`get with ${agent.name}, from the disk: ${wall} µs, ${cpu} µs of CPU time, ${bytes} bytes read`)
  return cost
}

/** Measures a server with one database per size. */
async function shared() {
  await using server = await startMongodb()
  await using stack = new AsyncDisposableStack()
  const stages: Stage[] = []
  let queries: Record<string, unknown>[] = []
  let url = ''
  for (const filled of mongodbCounts) {
    url = server.newUrl()
    queries = []
    const recorded = queries
    const onCommand = (one: Record<string, unknown>) => void recorded.push(one)
    const store = stack.use(await openMongodbStore({ url, agentId, onCommand }))
    const began = performance.now()
    await fillMongodb(url, agentId, filled)
    console.log(`${filled} tasks written in ${Math.round((performance.now() - began) / 1000)} s`)
    stages.push({ name: `${filled} tasks`, store, filled })
  }
  const all = () => Object.values(cpuByProgram()).reduce((sum, micros) => sum + micros, 0)
  const found = await costs(stages, 600, all)
  const plans = await plansOf(url, queries)
  console.log(
    `\n${server.kind}, microseconds of time (one round trip each), and of CPU time including the server`,
  )
  show(found)
  console.log('Query plans with the most tasks:')
  console.table(plans)
  const sorted = Object.values(plans).some((plan) => plan.includes(sorts))
  judge(
    found,
    questions.filter((question) => !sorted || question !== 'list'),
  )
  if (sorted)
    console.log(
      'not judged  list: this server finds the tasks of an owner by the index but does not use its order',
    )
  return { server: server.kind, found, plans }
}

function show(found: Record<string, Costs>): void {
  const rounded = (one: Costs) =>
    Object.fromEntries(
      questions.flatMap((name) => [
        [name, Math.round(one[name].wall)],
        [`${name}, CPU`, Math.round(one[name].cpu)],
      ]),
    )
  console.table(Object.fromEntries(Object.entries(found).map(([name, one]) => [name, rounded(one)])))
}

function judge(found: Record<string, Costs>, which: readonly Question[]): void {
  const [first, last] = [Object.values(found)[0], Object.values(found).at(-1)]
  if (first === undefined || last === undefined) return
  for (const name of which) {
    expectAtMost(`${name}: most tasks ÷ fewest, time`, last[name].wall / first[name].wall, 2)
    expectAtMost(`${name}: most tasks ÷ fewest, CPU time`, last[name].cpu / first[name].cpu, 2)
  }
}
