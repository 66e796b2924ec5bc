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
import { alice, createdIn } from '@parley/engine/store/sample-record.cases'
import { openSqliteStore } from '@parley/engine/store/sqlite/store'
import { startGatewayApp } from '@parley/gateway/app'
import { gatewayConfig } from '@parley/gateway/config'
import { makeLog } from '@parley/kit/process/log'
import { expect, onTestFinished, test } from 'vitest'
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
  const [under, all] = [createdIn(store, 'completed'), await store.listTasks({ owner: alice, limit: 100 })]
  expect(backup(data, copy)).toEqual(['agents/a/agent.db'])
  await under
  await createdIn(store, 'failed')
  await store[Symbol.asyncDispose]()
  renameSync(data, away)
  renameSync(copy, data)
  await using restored = await openSqliteStore({ file })
  const found = (await restored.listTasks({ owner: alice, limit: 100 })).items
  expect(found.slice(-20)).toEqual(all.items.slice(-20))
  expect((await restored.countByState()).failed).toBeUndefined()
  // The cursor is valid because its key was copied.
  const cursor = before.nextCursor ?? ''
  expect((await restored.listTasks({ owner: alice, limit: 5, cursor })).items).toHaveLength(5)
  await createdIn(restored, 'completed')
  for (const name of ['agent.db', 'agent.key.json']) {
    expect(statSync(path.join(agent, name)).mode & 0o777).toBe(0o600)
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
