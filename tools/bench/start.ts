/**
 * Time from `npm start` until it prints the table of addresses, which it does when every agent listens. Dependencies are
 * installed, and each start has a new DATA_DIR. The first start on a machine also fills the compile cache.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { median } from './support/measure.ts'
import { checkTarget, printTable, saveResults } from './support/report.ts'

const starts = 5
const limitMs = 60_000
const root = path.join(import.meta.dirname, '..', '..')

const seconds: number[] = []
for (let start = 0; start < starts; start += 1) seconds.push(await secondsToReady())
printTable(
  ['start', 'seconds to ready'],
  seconds.map((value, start) => [String(start + 1), value.toFixed(2)]),
)
checkTarget('npm start to ready', median(seconds))
await saveResults('start', { seconds, median: median(seconds) })

async function secondsToReady(): Promise<number> {
  const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  const began = performance.now()
  const child = spawn('npm', ['start'], {
    cwd: root,
    env: { ...process.env, PORT: '0', DATA_DIR: dataDir, LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  try {
    const printed = child.stdout.setEncoding('utf8')
    const timedOut = AbortSignal.timeout(limitMs)
    let text = ''
    for await (const chunk of printed.iterator({ destroyOnReturn: false })) {
      text += String(chunk)
      if (text.includes('curl ')) return (performance.now() - began) / 1000
      if (timedOut.aborted) break
    }
    throw new Error(`npm start did not become ready:\n${text}`)
  } finally {
    child.stdout.resume()
    child.kill('SIGTERM')
    await ended
    await rm(dataDir, { recursive: true, force: true })
  }
}
