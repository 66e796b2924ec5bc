import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { makeLog } from '../process/log.ts'
import { sampleRecord } from '../store/sample-record.cases.ts'
import { openSqliteStore } from '../store/sqlite.ts'
import { Leases } from './leases.ts'

test('a lease is renewed while it is kept; when another has the task, its keeper is told', async () => {
  await using stack = new AsyncDisposableStack()
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-leases-'))
  stack.defer(() => rm(folder, { recursive: true }))
  const store = stack.use(await openSqliteStore({ file: path.join(folder, 'agent.db') }))
  const leases = stack.use(
    new Leases({ store, log: makeLog({ level: 'silent', name: 'test' }), renewEveryMs: 5 }),
  )
  const lease = { holder: leases.holder, until: 1 }
  const record = { ...sampleRecord(), lease }
  await store.createTask(record)
  const told = Promise.withResolvers<void>()
  using _kept = leases.keep(record.id, told.resolve)
  let until = 1
  while (until === 1) {
    await wait(5)
    until = (await store.loadTask(record.id))?.lease?.until ?? 0
  }
  expect(until).toBeGreaterThan(Date.now())
  await store.commitTask({ ...record, version: 1, lease: { holder: 'another', until: 2 } })
  await told.promise
  expect((await store.loadTask(record.id))?.lease).toEqual({ holder: 'another', until: 2 })
})
