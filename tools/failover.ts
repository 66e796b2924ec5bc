/**
 * `npm run failover -- [--seconds 30] [--seed N] [--rate 20] [--logs <folder>]`: runs a gateway and three agents with
 * the same kind of skill while clients send messages to the gateway, some by A2A with calls that wait for the task, and
 * repeatedly kills (SIGKILL) the best agent. Then it checks every message. Exits with status 1 if an acknowledged task is
 * lost or a message is processed twice.
 */
import path from 'node:path'
import { parseArgs } from 'node:util'
import { type FailoverFigures, failoverRun, wrongIn } from './failover/run.ts'

const usage = 'npm run failover -- [--seconds 30] [--seed N] [--rate 20] [--logs <folder>], whole numbers'

process.exitCode = await main()

async function main(): Promise<number> {
  const options = read()
  if (options === undefined) {
    console.error(usage)
    return 2
  }
  const say = (text: string) => console.log(`${new Date().toISOString()} ${text}`)
  say(`seed ${options.seed}, ${options.seconds} s`)
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  const figures = await failoverRun({ ...options, say, signal: stop.signal })
  print(figures)
  const wrong = wrongIn(figures)
  for (const one of wrong) console.log(`wrong: ${one}`)
  console.log(wrong.length === 0 ? 'all checks passed' : `${wrong.length} findings`)
  return wrong.length === 0 ? 0 : 1
}

function print(figures: FailoverFigures): void {
  const { sent, acknowledged, moved, refused, unknown, unsettled, ended, restarted, lost, double, kills } =
    figures
  const clear = [...refused].map(([why, ids]) => [`refused clearly: ${why}`, ids.length])
  console.table({
    sent,
    acknowledged: acknowledged.length,
    'sent to the next candidate': moved,
    ...Object.fromEntries(clear),
    'unknown outcomes': unknown,
    'still unknown after repetitions': unsettled.length,
    ...Object.fromEntries(Object.entries(ended).map(([state, count]) => [`ended as ${state}`, count])),
    'restarted after a kill': restarted,
    lost: lost.length,
    'done twice': double.length,
  })
  console.table(
    kills.map(({ agent, ejectedMs, readyMs, reinstatedMs, newWorkMs }) => ({
      killed: agent.slug,
      'ejected after s': inSeconds(ejectedMs),
      'ready after s': inSeconds(readyMs),
      'reinstated after s': inSeconds(reinstatedMs),
      'new work after s': inSeconds(newWorkMs),
    })),
  )
}

function inSeconds(ms: number | undefined): number | string {
  return ms === undefined ? '-' : ms / 1000
}

function read(): { seed: number; seconds: number; rate: number; logs?: string } | undefined {
  try {
    const text = { type: 'string' } as const
    const { values } = parseArgs({ options: { seconds: text, seed: text, rate: text, logs: text } })
    const seconds = Number(values.seconds ?? 30)
    const seed = Number(values.seed ?? Math.floor(Math.random() * 1e9))
    const rate = Number(values.rate ?? 20)
    const counts = [seconds, rate].every((one) => Number.isSafeInteger(one) && one >= 1)
    if (!counts || !Number.isSafeInteger(seed)) return undefined
    return { seed, seconds, rate, ...(values.logs !== undefined && { logs: path.resolve(values.logs) }) }
  } catch {
    return undefined
  }
}
