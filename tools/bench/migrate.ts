/**
 * Runs `parley migrate` for 100,000 tasks (BENCH_TASKS) from an embedded store to a MongoDB-compatible server, kills it
 * with SIGKILL halfway, starts it again, and checks the result through the store's port.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { findAgents } from '@parley/engine/migration/find-agents'
import { openMongodbStore } from '@parley/engine/store/mongodb/store'
import { openSqliteStore } from '@parley/engine/store/sqlite/store'
import { loadOrCreateKeys } from '@parley/kit/did/key-file'
import { startMongodb } from '../testing/mongodb-server.ts'

import { saveResults } from './support/report.ts'
import { fillTasks, ownerOf, taskIdOf } from './support/sqlite-fill.ts'

const count = Number(process.env['BENCH_TASKS'] ?? 100_000)
const root = path.join(import.meta.dirname, '..', '..')
const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-bench-migrate-'))

try {
  const agentFolder = path.join(folder, 'agents', 'filled')
  mkdirSync(agentFolder, { recursive: true })
  await loadOrCreateKeys(path.join(agentFolder, 'agent.key.json'))
  const file = path.join(agentFolder, 'agent.db')
  await (await openSqliteStore({ file }))[Symbol.asyncDispose]()
  fillTasks(file, 0, count)
  await using server = await startMongodb()
  const url = server.newUrl()
  console.log(`${count} tasks, to ${server.kind}`)
  const killedAt = await killedInTheMiddle(url)
  const began = performance.now()
  const report = await migrated(url)
  const seconds = (performance.now() - began) / 1000
  const part = report.parts[0]
  const documents = Object.values(part?.verified ?? {}).reduce((sum, one) => sum + one.count, 0)
  await check(url)
  const result = { server: server.kind, count, killedAt, seconds, documents, part }
  console.table(part?.verified)
  console.log(`Killed at: ${killedAt}`)
  console.log(`The rest: ${seconds.toFixed(1)} s; ${documents} documents verified`)
  await saveResults('migrate', result)
} finally {
  rmSync(folder, { recursive: true })
}

function command(url: string, ...more: string[]): ChildProcess {
  const args = [
    path.join(root, 'cli', 'bin.mjs'),
    'migrate',
    '--from',
    `sqlite:${folder}`,
    '--to',
    url,
    ...more,
  ]
  return spawn(process.execPath, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
}

/** Kills the command at its second progress line and returns that line. */
async function killedInTheMiddle(url: string): Promise<string> {
  const child = command(url)
  let output = ''
  child.stderr?.on('data', (chunk: Buffer) => {
    output += String(chunk)
    if (output.split('\n').length > 2) child.kill('SIGKILL')
  })
  await once(child, 'close')
  return output.trim().split('\n').at(-1) ?? ''
}

async function migrated(url: string) {
  const child = command(url, '--json')
  const [out, err] = ['', ''] as [string, string]
  const output = { out, err }
  child.stdout?.on('data', (chunk: Buffer) => (output.out += String(chunk)))
  child.stderr?.on('data', (chunk: Buffer) => (output.err += String(chunk)))
  await once(child, 'close')
  if (child.exitCode !== 0) throw new Error(`migrate exited with ${child.exitCode}: ${output.err}`)
  return JSON.parse(output.out) as {
    parts: { verified: Record<string, { count: number; checksum: string }> }[]
  }
}

/** Checks the migrated data through the store's port, which the command's verification does not use. */
async function check(url: string): Promise<void> {
  const [agent] = await findAgents(folder, folder)
  await using store = await openMongodbStore({ url, agentId: agent?.agentId ?? '' })
  const { completed } = await store.countByState()
  if (completed !== count) throw new Error(`${completed} tasks instead of ${count}`)
  for (const number of [0, Math.floor(count / 2), count - 1]) {
    const task = await store.findTask(taskIdOf(number), ownerOf(Math.floor(number / 4)))
    if (task?.artifacts.length !== 1) throw new Error(`task ${number} does not exist`)
  }
}
