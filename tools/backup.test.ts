import { mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { alice, createdIn } from '@parley/engine/store/sample-record.cases'
import { openSqliteStore } from '@parley/engine/store/sqlite/store'
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

test.each([
  ['nothing to copy', () => undefined, 'No database'],
  ['an existing target', (copy: string) => mkdirSync(copy), 'already exists'],
])('%s is rejected', (_what, prepare, said) => {
  const { data, copy } = folders()
  mkdirSync(data)
  prepare(copy)
  expect(() => backup(data, copy)).toThrow(said)
})
