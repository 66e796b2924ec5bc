import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import type { DocumentDatabase } from '@parley/kit/database/documents'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { sqliteDocumentsSoon } from '@parley/kit/database/sqlite/documents'
import { Audit, receiveAudit } from '@parley/kit/process/audit'
import { makeLog } from '@parley/kit/process/log'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { sampleEntry } from '../registry/store/registry-store.cases.ts'
import { openGatewayMongodb } from '../store/mongodb/database.ts'
import { gatewayMigrations } from '../store/sqlite/schema.ts'
import { AgentHistory, agentChanges } from './agent-history.ts'
import { type AuditEntries, auditEntries } from './audit-entries.ts'
import { type AuditQuotas, AuditWriter } from './audit-writer.ts'

const log = makeLog({ level: 'silent', name: 'test' })
const close: (() => Promise<unknown>)[] = []
afterEach(async () => {
  vi.useRealTimers()
  while (close.length > 0) await close.pop()?.()
})

function writerOf(entries: AuditEntries, quotas: Partial<AuditQuotas> = {}): AuditWriter {
  const writer = new AuditWriter({ entries, log, retentionDays: 90, quotas })
  close.push(async () => writer[Symbol.asyncDispose]())
  return writer
}

const all = { after: 0, before: Number.MAX_SAFE_INTEGER, limit: 1000 }
const refused = (address: string) => ({
  address,
  action: 'message/send',
  allowed: false,
  reason: 'InvalidToken',
})

function cases(name: string, open: () => Promise<DocumentDatabase>): void {
  describe(`the audit log on ${name}`, () => {
    test('entries of all loggers below one are stored in order, cleaned, and listed newest first', async () => {
      const entries = auditEntries(await open())
      const writer = writerOf(entries)
      const root = log.child({})
      receiveAudit(root, writer.record)
      new Audit(root.child({ part: 'oauth' })).record({
        who: 'ann\n\u202e',
        action: 'oauth.grant',
        allowed: true,
      })
      new Audit(root).record({ ...refused('::1'), requestId: 'r1', target: '{"$gt":""}' })
      new Audit(log).record(refused('::2'))
      await writer.flush()
      const [last, first, ...others] = await entries.list(all)
      expect(others).toEqual([])
      expect(first).toMatchObject({ who: 'ann??', action: 'oauth.grant', allowed: true })
      expect(last).toMatchObject({ address: '::1', requestId: 'r1', target: '{"$gt":""}', allowed: false })
      const between = { ...all, before: last?.at ?? 0 }
      expect((await entries.list(between)).map(({ action }) => action)).toEqual(['oauth.grant'])
      expect(await entries.list({ ...all, allowed: false })).toEqual([last])
    })

    test('a flood of refusals from one address displaces no entry of others, and its size is recorded', async () => {
      vi.useFakeTimers({ toFake: ['Date'], now: new Date('2026-11-22T12:00:00Z') })
      const entries = auditEntries(await open())
      const writer = writerOf(entries, { refusedPerMinute: 5, sourceMax: 8, totalMax: 50 })
      writer.record({ who: 'root', action: 'registry.admit', target: 'sky', allowed: true })
      writer.record(refused('192.0.2.1'))
      for (let minute = 0; minute < 3; minute += 1) {
        for (let count = 0; count < 10_000; count += 1) writer.record(refused('203.0.113.9'))
        vi.advanceTimersByTime(60_000)
        await writer.flush()
      }
      const stored = await entries.list(all)
      expect(stored.filter(({ address }) => address === '203.0.113.9').length).toBeLessThanOrEqual(8)
      expect(stored.filter(({ address }) => address === '192.0.2.1')).toHaveLength(1)
      expect(stored.find(({ who }) => who === 'root')?.target).toBe('sky')
      expect(stored.find(({ action }) => action === 'audit.suppressed')?.reason).toBe(
        '9995 further entries of address 203.0.113.9 are in the log only',
      )
    })

    test('a flood from many addresses is bounded in total, and displaces no accepted action', async () => {
      const entries = auditEntries(await open())
      const writer = writerOf(entries, { allRefusedPerMinute: 40, totalMax: 20 })
      writer.record({ who: 'root', action: 'registry.admit', allowed: true })
      for (let count = 0; count < 1000; count += 1) writer.record(refused(`2001:db8::${count}`))
      await writer.flush()
      await writer.clean()
      expect(await entries.list({ ...all, allowed: false })).toHaveLength(20)
      expect(await entries.list({ ...all, allowed: true })).toHaveLength(1)
    })

    test('entries are removed after the retention time', async () => {
      const entries = auditEntries(await open())
      vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 91 * 24 * 60 * 60 * 1000 })
      await entries.add([{ id: 'old', source: 'x', at: Date.now() * 1000, action: 'old', allowed: true }])
      vi.useRealTimers()
      const writer = writerOf(entries)
      writer.record({ who: 'ann', action: 'new', allowed: true })
      await writer.flush()
      await writer.clean()
      expect((await entries.list(all)).map(({ action }) => action)).toEqual(['new'])
    })
  })

  describe(`the history of agents on ${name}`, () => {
    test('each change of health and admission is stored once, and changes of load are not', async () => {
      const changes = agentChanges(await open())
      await using history = new AgentHistory(changes, { log })
      const entry = sampleEntry({ admittedBy: 'root' })
      const quarantine = { since: '2026-11-22T12:00:00.000000+00:00', reason: 'x'.repeat(900), by: 'root' }
      const change = { at: quarantine.since, field: 'skills.<b>', before: null, after: 'y' }
      const states = [
        entry,
        { ...entry, load: { queueDepth: 3 } },
        { ...entry, quarantine },
        { ...entry, quarantine: { since: '2026-11-22T12:00:01.000000+00:00', reason: 'repeated failures' } },
        entry,
        { ...entry, status: 'unreachable' as const },
        { ...entry, cardChanges: [change] },
        { ...entry, cardChanges: [], admittedAt: quarantine.since },
        undefined,
      ]
      for (const [number, state] of states.entries()) history.changed(states[number - 1], state)
      await history.flush()
      const found = await changes.list(entry.id, { limit: 100 })
      expect(found.map(({ kind }) => kind).toReversed()).toEqual([
        'registered',
        'admitted',
        'ready',
        'quarantined',
        'ejected',
        'reinstated',
        'unreachable',
        'card_changed',
        'ready',
        'admitted',
        'left',
      ])
      const quarantined = found.find(({ kind }) => kind === 'quarantined')
      expect([quarantined?.by, quarantined?.reason?.length]).toEqual(['root', 500])
      expect(found.find(({ kind }) => kind === 'card_changed')?.reason).toBe('skills.<b>')
      const [newest, ...older] = found
      expect(await changes.list(entry.id, { limit: 100, before: newest?.at ?? 0 })).toEqual(older)
      expect(await changes.list('other', { limit: 100 })).toEqual([])
    })

    test('an agent keeps its 500 newest changes', async () => {
      const changes = agentChanges(await open())
      await using history = new AgentHistory(changes, { log })
      const entry = sampleEntry()
      const down = { ...entry, status: 'unreachable' as const }
      for (let count = 0; count < 300; count += 1) {
        history.changed(entry, down)
        history.changed(down, entry)
      }
      await history.flush()
      expect(await changes.list(entry.id, { limit: 1000 })).toHaveLength(500)
    })
  })
}

cases('SQLite', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'parley-records-'))
  const database = await openDatabase(path.join(folder, 'gateway.db'), gatewayMigrations)
  close.push(
    () => rm(folder, { recursive: true, force: true }),
    async () => database[Symbol.asyncDispose](),
  )
  return sqliteDocumentsSoon(database)
})

describe.skipIf(!hasMongodb)('on a MongoDB-compatible server (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  cases('MongoDB', async () => {
    const database = await openGatewayMongodb({ url: server.newUrl() })
    close.push(async () => database[Symbol.asyncDispose]())
    return database.documents
  })
})
