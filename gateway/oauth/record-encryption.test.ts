import path from 'node:path'
import type { DocumentDatabase } from '@parley/kit/database/documents'
import { memoryDocuments } from '@parley/kit/database/memory/documents'
import { openDatabase } from '@parley/kit/database/sqlite/database'
import { sqliteDocuments } from '@parley/kit/database/sqlite/documents'
import { makeLog } from '@parley/kit/process/log'
import { hasMongodb, type MongodbServer, startMongodb } from '@parley/tools/testing/mongodb-server'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { KeyRing, UnreadableRecord } from '../keys/key-ring.ts'
import { GatewayKeys } from '../keys/open-keys.ts'
import { openGatewayMongodb } from '../store/mongodb/database.ts'
import { gatewayMigrations } from '../store/sqlite/schema.ts'
import { keyStatus, rotateDataKey } from './key-rotation.ts'
import { oauthCollection, oauthStore } from './oauth-store.ts'
import { countRecords, encryptRecords } from './record-encryption.ts'
import { temporaryFolder, testMasters } from './testing.ts'

const open: AsyncDisposable[] = []
afterEach(async () => {
  while (open.length > 0) await open.pop()?.[Symbol.asyncDispose]()
})

const total = 450
const idOf = (n: number) => `record ${n} 😀`

/** Stores records as the versions before encryption did. */
async function plaintextRecords(database: DocumentDatabase): Promise<void> {
  const entries = database.collection(oauthCollection)
  for (let n = 0; n < total; n += 1) {
    const payload = JSON.stringify({ secret: `SEKRET ${n}`, uid: `uid ${n}` })
    await entries.put({ model: 'Session', id: idOf(n), payload, uid: `uid ${n}`, client_id: 'c' })
  }
}

async function storedText(database: DocumentDatabase): Promise<string> {
  return JSON.stringify(await database.collection(oauthCollection).find('all', {}))
}

function encryptionCases(name: string, openDocuments: () => Promise<DocumentDatabase>): void {
  describe(`encryption of the OAuth records in ${name}`, () => {
    test('plaintext records are readable before, during and after their encryption', async () => {
      const database = await openDocuments()
      await plaintextRecords(database)
      const ring = await KeyRing.open(database, testMasters)
      const store = oauthStore(database, ring)
      const check = async () => {
        for (const n of [0, 199, 200, total - 1]) {
          const payload = { secret: `SEKRET ${n}`, uid: `uid ${n}` }
          expect(await store.find('Session', idOf(n))).toEqual(payload)
          expect(await store.findByUid('Session', `uid ${n}`)).toEqual(payload)
        }
      }
      await check()
      const was = { secret: 'SEKRET 7', uid: 'uid 7' }
      expect(await store.exchange('Session', idOf(7), was, { ...was, changed: true })).toBe(true)
      let batches = 0
      const interrupted = encryptRecords(database, ring, () => {
        batches += 1
        throw new Error('killed')
      })
      await expect(interrupted).rejects.toThrow('killed')
      expect(batches).toBe(1)
      expect((await storedText(database)).includes('SEKRET')).toBe(true)
      await check()
      const result = await encryptRecords(database, ring)
      expect(result).toMatchObject({ renewed: 0, unreadable: 0 })
      expect(result.encrypted).toBeLessThanOrEqual(total - 200)
      expect(/SEKRET|"uid":"uid/.exec(await storedText(database))).toBeNull()
      await check()
      expect(await store.find('Session', idOf(7))).toEqual({ ...was, changed: true })
      await ring.refusePlaintext()
      await check()
      expect(await encryptRecords(database, ring)).toEqual({ encrypted: 0, renewed: 0, unreadable: 0 })
      const [key = { id: '' }] = ring.summary.keys
      expect(await countRecords(database, ring)).toEqual({ byDataKey: { [key.id]: total }, other: 0 })
      await store.revokeByClientId('c')
      expect(await store.find('Session', idOf(0))).toBeUndefined()
    })

    test('records are encrypted with a new data key while they are changed, and an interruption continues', async () => {
      const database = await openDocuments()
      const ring = await KeyRing.open(database, testMasters)
      const store = oauthStore(database, ring)
      for (let n = 0; n < total; n += 1)
        await store.upsert({ model: 'Session', id: idOf(n), uid: `uid ${n}`, payload: { n, at: 0 } })
      const [first] = ring.summary.keys
      await ring.addDataKey()
      await expect(
        encryptRecords(database, ring, () => {
          throw new Error('killed')
        }),
      ).rejects.toThrow('killed')
      const counts = await countRecords(database, ring)
      expect(Object.values(counts.byDataKey).toSorted((a, b) => a - b)).toEqual([200, 250])
      const changing = new AbortController()
      const changes = (async () => {
        let at = 0
        for (; !changing.signal.aborted; at += 1)
          for (const n of [3, 300])
            expect(await store.exchange('Session', idOf(n), { n, at }, { n, at: at + 1 })).toBe(true)
        return at
      })()
      const result = await encryptRecords(database, ring)
      changing.abort()
      const at = await changes
      expect(result.unreadable).toBe(0)
      expect(result.renewed).toBeGreaterThan(200)
      expect((await countRecords(database, ring)).byDataKey[first?.id ?? '']).toBe(0)
      await ring.removeDataKeys([first?.id ?? ''])
      for (let n = 0; n < total; n += 50)
        expect(await store.findByUid('Session', `uid ${n}`)).toEqual({ n, at: n === 300 ? at : 0 })
    })

    test('a changed, moved or plaintext payload is refused with its kind and is left unchanged', async () => {
      const database = await openDocuments()
      const ring = await KeyRing.open(database, testMasters)
      await ring.refusePlaintext()
      const store = oauthStore(database, ring)
      const entries = database.collection(oauthCollection)
      await store.upsert({ model: 'Client', id: 'low', payload: { scope: 'agent:read' } })
      await store.upsert({ model: 'Client', id: 'high', payload: { scope: 'agent:admin SEKRET' } })
      const high = (await entries.get({ model: 'Client', id: 'high' }))?.payload ?? ''
      const forged = [
        high,
        '{"scope":"agent:admin SEKRET"}',
        `${high.slice(0, 30)}${high.slice(31)}`,
        high.slice(0, 40),
        '',
      ]
      for (const payload of forged) {
        await entries.update({ model: 'Client', id: 'low' }, { payload })
        for (const call of [
          () => store.find('Client', 'low'),
          () => store.exchange('Client', 'low', { scope: 'agent:admin SEKRET' }, {}),
        ]) {
          const error = await call().catch((thrown: unknown) => thrown)
          expect(error).toBeInstanceOf(UnreadableRecord)
          expect(String(error)).toContain('(OAuth Client)')
          expect(String(error)).not.toMatch(/SEKRET|agent:admin/)
        }
      }
      await ring.addDataKey()
      expect(await encryptRecords(database, ring)).toEqual({ encrypted: 0, renewed: 1, unreadable: 1 })
      expect((await entries.get({ model: 'Client', id: 'low' }))?.payload).toBe('')
      expect(await store.find('Client', 'high')).toEqual({ scope: 'agent:admin SEKRET' })
    })
  })
}

encryptionCases('memory', async () => memoryDocuments())

encryptionCases('SQLite', async () => {
  const folder = await temporaryFolder()
  const database = await openDatabase(path.join(folder.dir, 'gateway.db'), gatewayMigrations)
  open.push(folder, database)
  return sqliteDocuments(database)
})

describe.skipIf(!hasMongodb)('on a MongoDB-compatible server (needs mongod)', () => {
  let server: MongodbServer
  beforeAll(async () => {
    server = await startMongodb()
  })
  afterAll(() => server[Symbol.asyncDispose]())

  encryptionCases('MongoDB', async () => {
    const database = await openGatewayMongodb({ url: server.newUrl() })
    open.push(database)
    return database.documents
  })

  test('one gateway rotates the data key while another writes, and no record is lost', async () => {
    const url = server.newUrl()
    const settings = { current: new Uint8Array(32).fill(5), previous: undefined }
    const log = makeLog({ level: 'silent', name: 'test' })
    const gateway = async () => {
      const [folder, database] = [await temporaryFolder(), await openGatewayMongodb({ url })]
      open.push(folder, database)
      const { documents } = database
      return GatewayKeys.open({ dataDir: folder.dir, settings, documents, log })
    }
    const [one, other] = [await gateway(), await gateway()]
    const store = oauthStore(other.documents, other.cipher)
    const writing = new AbortController()
    const written = (async () => {
      let n = 0
      for (; !writing.signal.aborted; n += 1)
        await store.upsert({ model: 'Session', id: idOf(n), payload: { n } })
      return n
    })()
    const first = await rotateDataKey(one, 200)
    const second = await rotateDataKey(one, 200)
    writing.abort()
    const count = await written
    const third = await rotateDataKey(one, 0)
    expect([first, second, third].map(({ unreadable }) => unreadable)).toEqual([0, 0, 0])
    for (const keys of [one, other]) {
      const read = oauthStore(keys.documents, keys.cipher)
      for (let n = 0; n < count; n += 1) expect(await read.find('Session', idOf(n))).toEqual({ n })
    }
    const [current] = third.status.dataKeys.filter((key) => key.current)
    expect(current?.records).toBe(count)
    // A gateway that was suspended may still write with an earlier key, so a recent one is kept.
    expect(third.status.dataKeys.length).toBeGreaterThan(1)
    expect((await keyStatus(other)).dataKeys).toEqual(third.status.dataKeys)
  })
})
