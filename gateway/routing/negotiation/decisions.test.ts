import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { makeLog } from '@parley/kit/process/log'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { gatewayMigrations } from '../../store/sqlite/schema.ts'
import { SqliteRoutingStore } from '../store/sqlite/routing.ts'
import { DecisionLog } from './decisions.ts'

let folder = ''
const record = (id: string) => ({ id, owner: 'alice', at: 5, body: { score: 0.5 } })
const log = makeLog({ level: 'silent', name: 'test' })

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-decisions-'))
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

async function open() {
  const database = await openDatabase(path.join(folder, 'a.db'), gatewayMigrations)
  const store = new SqliteRoutingStore(database)
  return { store, decisions: new DecisionLog({ store, log }), close: () => database[Symbol.asyncDispose]() }
}

test('a record can be read immediately after saving and after a restart', async () => {
  const first = await open()
  await first.decisions.saveInBackground(record('a'))
  expect(await first.store.findDecision('a')).toBeUndefined()
  expect(await first.decisions.find('a')).toEqual(record('a'))
  await first.close()
  const again = await open()
  expect(await again.decisions.find('a')).toEqual(record('a'))
  expect(await again.decisions.find('b')).toBeUndefined()
  await again.close()
})

test('saving waits for the store if more than 256 records are pending', async () => {
  const { store, decisions, close } = await open()
  for (let number = 0; number < 256; number += 1) await decisions.saveInBackground(record(String(number)))
  expect(await store.findDecision('0')).toBeUndefined()
  await decisions.saveInBackground(record('256'))
  for (const id of ['0', '255', '256']) expect(await store.findDecision(id)).toEqual(record(id))
  await close()
})

test('a record that the store rejects is lost without delaying a caller', async () => {
  const { decisions, close } = await open()
  await close()
  await decisions.saveInBackground(record('a'))
  await expect.poll(() => decisions.find('a').catch(() => 'gone')).toBe('gone')
})
