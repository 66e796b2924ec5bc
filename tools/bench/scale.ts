/**
 * `message/send` to `completed` per second with 1, 2 and 4 processes of one agent on MongoDB and Redis, all on this
 * machine. Also measures CPU time per task in each agent, the OAuth server, the database and Redis, the cost of an idle
 * process, and commands per task to both servers, which would grow with lost races between processes. BENCH_SECONDS is
 * the duration of each run (10; with BENCH_QUICK=yes 3), and BENCH_PROCESSES selects some of the counts ("1,4") for comparisons, without writing results. Needs a
 * MongoDB-compatible server and redis-server.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { connectMongodb } from '@parley/kit/database/mongodb/database'
import { Pool } from 'undici'
import { hasMongodb, startMongodb } from '../testing/mongodb-server.ts'
import { hasRedis, redisCommands, startRedis } from '../testing/redis-server.ts'
import { AgentProcesses } from './support/agent-processes.ts'
import { cpuByProgram } from './support/process-tree.ts'
import { checkTarget, saveResults } from './support/report.ts'
import { tokenOf } from './support/tokens.ts'

const quick = process.env['BENCH_QUICK'] === 'yes'
const seconds = Number(process.env['BENCH_SECONDS'] ?? (quick ? 3 : 10))
/** Seconds per process to warm up the compiler, and seconds of the idle measurement. */
const [warmUpEach, idleSeconds] = quick ? [2, 2] : [5, 5]
const clients = 32
const processCounts = (process.env['BENCH_PROCESSES'] ?? '1,2,4').split(',').map(Number)
const countedCommands = ['insert', 'update', 'find', 'delete', 'aggregate', 'findAndModify']

if (hasMongodb && hasRedis) await main()
else console.log('Not measured: needs a MongoDB-compatible server (npm run mongodb) and redis-server.')

interface Row {
  rates: Record<string, number>
  /** Microseconds per task. */
  cpu: Record<string, number>
  /** Per task. */
  commands: Record<string, number>
}

async function main(): Promise<void> {
  await using mongodb = await startMongodb()
  await using redis = await startRedis()
  const rows: Record<string, Row> = {}
  for (const count of processCounts) {
    const dataDir = mkdtempSync(path.join(os.tmpdir(), 'parley-bench-scale-'))
    try {
      const url = mongodb.newUrl()
      const env = { DATA_DIR: dataDir, STORE_URL: url, REDIS_URL: redis.url }
      await using agents = await AgentProcesses.start(count, env)
      const idle = await idleCost(agents)
      await load(agents.addresses, warmUpEach * count)
      const row = await measure(agents, { mongodb: url, redis: redis.url })
      rows[`${count} processes`] = { ...row, rates: { ...row.rates, 'idle process, CPU ms/s': idle } }
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  }
  console.log(`${mongodb.kind}, ${clients} clients, ${seconds} s each`)
  const parts = { rates: '', cpu: 'CPU microseconds per task', commands: 'Commands per task' }
  for (const [part, title] of Object.entries(parts) as [keyof Row, string][]) {
    console.log(title)
    console.table(Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, row[part]])))
  }
  // The results of a selection do not replace those of all.
  if (process.env['BENCH_PROCESSES'] !== undefined) return
  checkTarget(
    'tasks per second on MongoDB and Redis, one agent process',
    rows['1 processes']?.rates['completed/s'] ?? Number.NaN,
  )
  const result = { server: mongodb.kind, clients, seconds, rows }
  await saveResults('scale', result)
}

/** CPU milliseconds per second of an idle process, which polls the queue, leases and webhooks. */
async function idleCost(agents: AgentProcesses): Promise<number> {
  // Lets the work after a start finish, so that its garbage collection does not affect the measurement.
  await wait(2000)
  const before = agents.cpuMicros
  await wait(idleSeconds * 1000)
  const spent = since(before, agents.cpuMicros)
  return Math.round(spent.reduce((sum, micros) => sum + micros, 0) / 1000 / idleSeconds / spent.length)
}

async function measure(agents: AgentProcesses, urls: { mongodb: string; redis: string }): Promise<Row> {
  await allEnded(urls.mongodb)
  const commands = async () => ({
    ...prefixed('mongodb', await mongodbCommands(urls.mongodb)),
    ...prefixed('redis', await redisCommands(urls.redis)),
  })
  const before = { each: agents.cpuMicros, all: cpuByProgram(), commands: await commands() }
  const began = performance.now()
  const accepted = await load(agents.addresses, seconds)
  const sent = performance.now()
  await allEnded(urls.mongodb)
  const took = (performance.now() - began) / 1000
  const each = since(before.each, agents.cpuMicros)
  const all = sums(before.all, cpuByProgram())
  const busy = Object.values(all).reduce((sum, micros) => sum + micros, 0)
  const ofAgents = each.reduce((sum, micros) => sum + micros, 0)
  const { node = 0, ...others } = all
  const cpu = { agents: ofAgents, 'oauth server': node - ofAgents, ...others }
  return {
    rates: {
      'completed/s': Math.round(accepted / took),
      'accepted/s': Math.round((accepted * 1000) / (sent - began)),
      'cores busy %': Math.round(busy / 1e4 / took / os.availableParallelism()),
    },
    cpu: perTask(cpu, accepted, 1),
    commands: perTask(grown(before.commands, await commands()), accepted, 100),
  }
}

function since(before: number[], after: number[]): number[] {
  return after.map((value, i) => value - (before[i] ?? 0))
}

function prefixed(name: string, counts: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(counts).map(([command, count]) => [`${name} ${command}`, count]))
}

function grown(before: Record<string, number>, after: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(after).map(([name, count]) => [name, count - (before[name] ?? 0)]))
}

/** CPU time between the two measurements, by component. */
function sums(before: Record<string, number>, after: Record<string, number>): Record<string, number> {
  const found: Record<string, number> = {}
  for (const [program, micros] of Object.entries(grown(before, after)))
    found[nameOf(program)] = (found[nameOf(program)] ?? 0) + micros
  return found
}

/** Divides the figures by the number of tasks, rounds them and omits zeros. */
function perTask(all: Record<string, number>, tasks: number, parts: number): Record<string, number> {
  const each = Object.entries(all).map(
    ([name, sum]) => [name, Math.round((sum * parts) / tasks) / parts] as const,
  )
  return Object.fromEntries(each.filter(([, value]) => value >= 5 / parts || (parts === 1 && value > 0)))
}

/**
 * Resolves when no task in the database is waiting or running. It queries the database because the agents' metrics are
 * some seconds old.
 */
async function allEnded(url: string): Promise<void> {
  await using database = await connectMongodb({ url })
  const tasks = database.db.collection<{ agent_id: string; state: string }>('tasks')
  const agentId = (await tasks.findOne({}))?.agent_id ?? ''
  for (const end = Date.now() + 120_000; Date.now() < end; await wait(50)) {
    if ((await tasks.findOne({ agent_id: agentId, state: { $in: ['submitted', 'working'] } })) === null)
      return
  }
  throw new Error('the tasks do not end')
}

function nameOf(program: string): string {
  if (/^(node|MainThread)/.test(program)) return 'node'
  if (program === 'redis-server' || program === 'this bench') return program
  return 'database'
}

/** Resolves with the number of responses within the time. @throws Error with the first refused response */
async function load(addresses: string[], forSeconds: number): Promise<number> {
  const pools = addresses.map((address) => new Pool(address, { connections: clients }))
  const end = performance.now() + forSeconds * 1000
  let accepted = 0
  const headers = { authorization: `Bearer ${tokenOf(1)}`, 'content-type': 'application/json' }
  const client = async (number: number) => {
    for (let turn = number; performance.now() < end; turn += 1) {
      const parts = [{ kind: 'text', text: 'The quick brown fox jumps over the lazy dog.' }]
      const message = { role: 'user', kind: 'message', messageId: crypto.randomUUID(), parts }
      const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params: { message } })
      const pool = pools[turn % pools.length] as Pool
      const answer = await pool.request({ path: '/', method: 'POST', headers, body })
      const text = await answer.body.text()
      if (answer.statusCode !== 200) throw new Error(`refused: ${text.slice(0, 300)}`)
      accepted += 1
    }
  }
  await Promise.all(Array.from({ length: clients }, (_, number) => client(number)))
  await Promise.all(pools.map((pool) => pool.close()))
  return accepted
}

/** Number of calls of each command since the server started; empty if the server does not report them. */
async function mongodbCommands(url: string): Promise<Record<string, number>> {
  await using database = await connectMongodb({ url })
  const status = await database.client.db('admin').command({ serverStatus: 1 })
  const { commands = {} } = (status['metrics'] ?? {}) as { commands?: Record<string, { total?: unknown }> }
  return Object.fromEntries(countedCommands.map((name) => [name, Number(commands[name]?.total ?? 0)]))
}
