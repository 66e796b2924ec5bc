/**
 * `npm run chaos -- [--seconds 300] [--seed N] [--logs <folder>]`: runs two gateways and three processes of an agent on
 * MongoDB and Redis while clients sign, pay and register webhooks. It kills (SIGKILL) and freezes processes, empties
 * Redis, stops the database and sets client clocks wrong. Then it checks every acknowledged task, event, webhook and
 * payment. Exits with status 1 if a check fails.
 */
import path from 'node:path'
import { parseArgs } from 'node:util'
import { chaosRun, wrongIn } from './chaos/run.ts'
import { hasServers } from './testing/agent-processes.ts'

const usage = 'npm run chaos -- [--seconds 300] [--seed N] [--logs <folder>], whole numbers'

process.exitCode = await main()

async function main(): Promise<number> {
  const options = read()
  if (options === undefined) {
    console.error(usage)
    return 2
  }
  if (!hasServers) {
    console.error('npm run chaos needs redis-server and a MongoDB-compatible server: see npm run mongodb')
    return 2
  }
  const say = (text: string) => console.log(`${new Date().toISOString()} ${text}`)
  say(`seed ${options.seed}, ${options.seconds} s`)
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  const figures = await chaosRun({ ...options, say, signal: stop.signal })
  console.log(JSON.stringify(figures, undefined, 2))
  const wrong = wrongIn(figures)
  for (const one of wrong) console.log(`wrong: ${one}`)
  const { seed, faults, tasks, payments, lost, double, stuck } = figures
  const made = Object.entries(faults).map(([kind, count]) => `${kind} ${count}`)
  console.log(`seed ${seed}; faults: ${made.join(', ')}`)
  console.log(
    `${tasks} tasks, ${payments} paid: lost ${lost.length}, double ${double.length}, stuck ${stuck.length}; ${wrong.length === 0 ? 'all checks passed' : `${wrong.length} findings`}`,
  )
  return wrong.length === 0 ? 0 : 1
}

function read(): { seed: number; seconds: number; logs?: string } | undefined {
  try {
    const options = {
      seconds: { type: 'string' },
      seed: { type: 'string' },
      logs: { type: 'string' },
    } as const
    const { values } = parseArgs({ options })
    const seconds = Number(values.seconds ?? 300)
    const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9))
    if (!Number.isSafeInteger(seconds) || seconds < 1 || !Number.isSafeInteger(seed)) return undefined
    return { seed, seconds, ...(values.logs !== undefined && { logs: path.resolve(values.logs) }) }
  } catch {
    return undefined
  }
}
