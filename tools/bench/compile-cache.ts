/** Effect of the compile cache of `cli/bin.mjs`: start time and memory of a process that loads the agent server. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { saveResults } from './support/report.ts'

const runs = 7
const root = path.join(import.meta.dirname, '..', '..')
const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-bench-'))
const program = `
import { setTimeout } from 'node:timers/promises'
await import(${JSON.stringify(path.join(root, 'shared', 'agent', 'server', 'app.ts'))})
const startMs = performance.now()
await setTimeout(500)
console.log(JSON.stringify({ startMs, rssBytes: process.memoryUsage.rss() }))
process.exit()`

interface Start {
  startMs: number
  rssBytes: number
}

const { NODE_COMPILE_CACHE: _cache, ...env } = process.env
const without = measure(env)
const withCache = measure({ ...env, NODE_COMPILE_CACHE: path.join(folder, 'cache') })
rmSync(folder, { recursive: true })

console.log(`Loading shared/agent/server/app.ts, median of ${runs} starts, Node ${process.versions.node}`)
console.table({ 'without cache': show(without), 'with cache': show(withCache) })
const result = { node: process.versions.node, runs, without, withCache }
await saveResults('compile-cache', result)

function measure(environment: NodeJS.ProcessEnv): Start {
  const args = ['--input-type=module', '--eval', program]
  const once = () =>
    JSON.parse(execFileSync(process.execPath, args, { env: environment, encoding: 'utf8' })) as Start
  // The first start fills the cache.
  once()
  const starts = Array.from({ length: runs }, once)
  return { startMs: median(starts.map((s) => s.startMs)), rssBytes: median(starts.map((s) => s.rssBytes)) }
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0
}

function show({ startMs, rssBytes }: Start) {
  return { 'start ms': Math.round(startMs), 'RSS MB': Math.round(rssBytes / 1e6) }
}
