import { spawn } from 'node:child_process'
import {
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { alice, createdIn } from '@parley/engine/store/sample-record.cases'
import { openSqliteStore } from '@parley/engine/store/sqlite/store'
import { startGatewayApp } from '@parley/gateway/app'
import { gatewayConfig } from '@parley/gateway/config'
import { makeLog } from '@parley/kit/process/log'
import { expect, onTestFinished, test, vi } from 'vitest'
import { backup } from './backup.ts'

function folders() {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-backup-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  return { data: path.join(folder, 'data'), copy: path.join(folder, 'copy'), away: path.join(folder, 'away') }
}

test('a copy made under load contains everything acknowledged before it started, and servers can use it', async () => {
  const { data, copy, away } = folders()
  const [agent, file] = [path.join(data, 'agents', 'a'), path.join(data, 'agents', 'a', 'agent.db')]
  mkdirSync(agent, { recursive: true })
  writeFileSync(path.join(agent, 'agent.key.json'), '{}')
  const store = await openSqliteStore({ file })
  for (let count = 0; count < 20; count += 1) await createdIn(store, 'completed')
  const before = await store.listTasks({ owner: alice, limit: 5 })
  const all = await store.listTasks({ owner: alice, limit: 100 })
  const last = await createdIn(store, 'completed')
  const under = createdIn(store, 'completed')
  expect(backup(data, copy)).toEqual(['agents/a/agent.db'])
  expect(readdirSync(path.join(copy, 'agents', 'a')).sort()).toEqual(['agent.db', 'agent.key.json'])
  await under
  await createdIn(store, 'failed')
  await store[Symbol.asyncDispose]()
  renameSync(data, away)
  renameSync(copy, data)
  await using restored = await openSqliteStore({ file })
  const found = (await restored.listTasks({ owner: alice, limit: 100 })).items
  expect(found.slice(-21)).toEqual([last, ...all.items])
  expect((await restored.countByState()).failed).toBeUndefined()
  // The cursor is valid because its key was copied.
  const cursor = before.nextCursor ?? ''
  expect((await restored.listTasks({ owner: alice, limit: 5, cursor })).items).toHaveLength(5)
  await createdIn(restored, 'completed')
  for (const name of ['agent.db', 'agent.key.json']) {
    expect(statSync(path.join(agent, name)).mode & 0o777).toBe(0o600)
  }
})

/** Writes tasks until it is killed, and prints the number of each after it is durable. */
const writer = (file: string) => `
  const { openSqliteStore } = await import(${JSON.stringify(import.meta.resolve('@parley/engine/store/sqlite/store'))})
  const { created } = await import(${JSON.stringify(import.meta.resolve('@parley/engine/store/sample-record.cases'))})
  const store = await openSqliteStore({ file: ${JSON.stringify(file)} })
  let number = 0
  for (let client = 0; client < 32; client += 1) {
    void (async () => {
      for (;;) {
        const id = String(number++)
        await created(store, { id })
        console.log(id)
      }
    })()
  }`

test('copies made while another process writes many tasks contain everything acknowledged before', async () => {
  const { data } = folders()
  mkdirSync(data)
  const child = spawn(process.execPath, ['--input-type=module', '-e', writer(path.join(data, 'agent.db'))], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const acknowledged: string[] = []
  createInterface({ input: child.stdout }).on('line', (id) => acknowledged.push(id))
  for (let round = 1; round <= 4; round += 1) {
    await vi.waitUntil(() => acknowledged.length > round * 3000, { timeout: 20_000 })
    const before = [...acknowledged]
    const copy = `${data}-${round}`
    onTestFinished(() => rmSync(copy, { recursive: true }))
    backup(data, copy)
    using database = new DatabaseSync(path.join(copy, 'agent.db'))
    const found = new Set(
      database
        .prepare('SELECT id FROM tasks')
        .all()
        .map(({ id }) => id),
    )
    expect(before.filter((id) => !found.has(id))).toEqual([])
    expect(database.prepare('SELECT sum(task_count) AS sum FROM contexts').get()).toEqual({ sum: found.size })
  }
})

test('a restored gateway needs its master key, which the copy does not contain', async () => {
  const { data, copy, away } = folders()
  const log = makeLog({ level: 'silent', name: 'test' })
  const start = (env: Record<string, string> = {}) =>
    startGatewayApp({ settings: gatewayConfig({ DATA_DIR: data, PORT: '0', ...env }), log })
  const clientFile = path.join(data, 'oauth', 'operator-client.json')
  let client: string
  {
    await using _gateway = await start()
    client = readFileSync(clientFile, 'utf8')
    expect(backup(data, copy)).toEqual(['gateway.db'])
  }
  const secret: string = JSON.parse(client).client_secret
  for (const name of globSync('**/*', { cwd: copy }).filter((one) =>
    statSync(path.join(copy, one)).isFile(),
  )) {
    expect(readFileSync(path.join(copy, name)).includes(secret)).toBe(false)
    expect(name).not.toContain('master.key')
  }
  renameSync(data, away)
  renameSync(copy, data)
  const names = readdirSync(data).sort()
  await expect(start()).rejects.toThrow('there is no master key')
  const other = { PARLEY_MASTER_KEY: Buffer.alloc(32, 1).toString('base64') }
  await expect(start(other)).rejects.toThrow('is encrypted with the master key')
  const isDatabaseFile = (name: string) => /\.db-(wal|shm)$|\.lock$/.test(name)
  expect(
    readdirSync(data)
      .filter((name) => !isDatabaseFile(name))
      .sort(),
  ).toEqual(names)
  copyFileSync(path.join(away, 'master.key'), path.join(data, 'master.key'))
  await using _restored = await start()
  expect(JSON.parse(readFileSync(clientFile, 'utf8')).client_secret).toBe(secret)
})

test.each([
  ['nothing to copy', () => undefined, 'No database'],
  ['an existing target', (copy: string) => mkdirSync(copy), 'already exists'],
])('%s is rejected', (_what, prepare, said) => {
  const { data, copy } = folders()
  mkdirSync(data)
  prepare(copy)
  expect(() => backup(data, copy)).toThrow(said)
})
