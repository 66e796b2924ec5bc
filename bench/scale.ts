/**
 * `message/send` to `completed` a second with 1, 2 and 4 processes of one agent on MongoDB and Redis, all on this machine, and
 * the CPU time that a task costs in the agents, the database, Redis and the OAuth server. BENCH_SECONDS: how long each (10).
 * Needs a MongoDB-compatible server and redis-server.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Pool } from 'undici'
import { connectMongodb } from '../shared/store/mongodb-database.ts'
import { hasMongodb, startMongodb } from '../shared/testing/mongodb-server.ts'
import { hasRedis, startRedis } from '../shared/testing/redis-server.ts'
import { AgentProcesses } from './support/agent-processes.ts'
import { machine } from './support/machine.ts'
import { cpuByProgram } from './support/process-tree.ts'
import { tokenOf } from './support/tokens.ts'

const seconds = Number(process.env['BENCH_SECONDS'] ?? 10)
const clients = 32
const root = path.dirname(import.meta.dirname)

if (hasMongodb && hasRedis) await main()
else
  console.log(
    'Nothing is measured: a MongoDB-compatible server (npm run mongodb) and redis-server are needed.',
  )

async function main(): Promise<void> {
  await using mongodb = await startMongodb()
  await using redis = await startRedis()
  const rows: Record<string, Record<string, number>> = {}
  for (const count of [1, 2, 4]) {
    const dataDir = mkdtempSync(path.join(os.tmpdir(), 'parley-bench-scale-'))
    try {
      const url = mongodb.newUrl()
      const env = { DATA_DIR: dataDir, STORE_URL: url, REDIS_URL: redis.url }
      await using agents = await AgentProcesses.start(count, env)
      await load(agents.addresses, 2)
      rows[`${count} processes`] = await measure(agents, url)
    } finally {
      rmSync(dataDir, { recursive: true, force: true })
    }
  }
  console.log(`${mongodb.kind}, ${clients} clients, ${seconds} s each; CPU in microseconds a task`)
  console.table(rows)
  const result = { machine: machine(), server: mongodb.kind, clients, seconds, rows }
  writeFileSync(path.join(root, 'bench', 'results', 'scale.json'), `${JSON.stringify(result, null, 2)}\n`)
}

async function measure(agents: AgentProcesses, url: string): Promise<Record<string, number>> {
  await allEnded(url)
  const [before, began] = [cpuByProgram(), performance.now()]
  const accepted = await load(agents.addresses, seconds)
  const sent = performance.now()
  await allEnded(url)
  const took = (performance.now() - began) / 1000
  const after = cpuByProgram()
  const cpu = Object.entries(after).map(([program, micros]) => {
    return [nameOf(program), Math.round((micros - (before[program] ?? 0)) / accepted)] as const
  })
  const sums: Record<string, number> = {}
  for (const [name, micros] of cpu) if (micros > 0) sums[name] = (sums[name] ?? 0) + micros
  const busy = Object.values(sums).reduce((sum, micros) => sum + micros, 0) * accepted
  return {
    'completed/s': Math.round(accepted / took),
    'accepted/s': Math.round((accepted * 1000) / (sent - began)),
    ...sums,
    'cores busy %': Math.round(busy / 1e4 / took / os.availableParallelism()),
  }
}

/** Until no task of the database waits or runs. Asked there: what agents tell of their tasks is a few seconds old. */
async function allEnded(url: string): Promise<void> {
  await using database = await connectMongodb({ url })
  const tasks = database.db.collection<{ agent_id: string; state: string }>('tasks')
  const agentId = (await tasks.findOne({}))?.agent_id ?? ''
  for (const end = Date.now() + 120_000; Date.now() < end; await wait(50)) {
    if ((await tasks.findOne({ agent_id: agentId, state: { $in: ['submitted', 'working'] } })) === null)
      return
  }
  throw new Error('the tasks do not come to an end')
}

function nameOf(program: string): string {
  if (/^(node|MainThread)/.test(program)) return 'agents and OAuth server'
  if (program === 'redis-server' || program === 'this bench') return program
  return 'database'
}

/** As many as are answered within the time; resolves with their number. @throws Error with an answer that was refused */
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
