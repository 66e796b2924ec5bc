import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { type FileHandle, mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { openSqliteStore } from '@parley/engine/store/sqlite/store'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { DatabaseRefused } from '../errors.ts'
import { openDatabase, type SqliteDatabase } from './database.ts'

const one = 'CREATE TABLE notes (text TEXT NOT NULL UNIQUE)'
const two = "ALTER TABLE notes ADD COLUMN author TEXT NOT NULL DEFAULT 'nobody'"
let folder = ''
let file = ''

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-database-'))
  file = path.join(folder, 'deep', 'a.db')
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

const insert = (database: SqliteDatabase, text: string) =>
  database.write(() => {
    database.statement('INSERT INTO notes (text) VALUES (?)').run(text)
    return text
  })
const texts = (database: SqliteDatabase) =>
  database.read(() =>
    database
      .statement('SELECT text FROM notes ORDER BY text')
      .all()
      .map((row) => row['text']),
  )

test('a file is created with its folder and cannot be read by other users', async () => {
  await using database = await openDatabase(file, [one])
  await insert(database, 'a')
  for (const suffix of ['', '-wal', '.lock']) expect((await stat(file + suffix)).mode & 0o777).toBe(0o600)
})

test('each migration runs once, in order, and rows are preserved', async () => {
  const first = await openDatabase(file, [one])
  await insert(first, 'a')
  await first[Symbol.asyncDispose]()
  for (let time = 0; time < 2; time += 1) {
    await using database = await openDatabase(file, [one, two])
    const rows = await database.read(() => database.statement('SELECT * FROM notes').all())
    expect(rows).toEqual([{ text: 'a', author: 'nobody' }])
  }
})

test('a failed migration keeps the previous version', async () => {
  await (await openDatabase(file, [one]))[Symbol.asyncDispose]()
  await expect(openDatabase(file, [one, `${two}; SELECT nonsense`])).rejects.toThrow('nonsense')
  await using database = await openDatabase(file, [one])
  await insert(database, 'a')
  expect(await database.read(() => database.statement('SELECT * FROM notes').all())).toEqual([{ text: 'a' }])
})

test('a schema of a newer version is rejected with a readable message, and the file is not changed', async () => {
  await (await openDatabase(file, [one, two]))[Symbol.asyncDispose]()
  const before = await readFile(file)
  const refused = openDatabase(file, [one])
  await expect(refused).rejects.toThrow(DatabaseRefused)
  await expect(refused).rejects.toThrow(
    `The database ${file} was written by a newer Parley (schema 2, this one knows 1). Start the newer version`,
  )
  expect(await readFile(file)).toEqual(before)
  // The rejected opening leaves no lock behind.
  await (await openDatabase(file, [one, two]))[Symbol.asyncDispose]()
})

test('a file that is not a database is rejected with a readable message', async () => {
  const other = path.join(folder, 'b.db')
  await writeFile(
    other,
    'This is a letter to my grandmother, longer than the header of a database would be. '.repeat(9),
  )
  await expect(openDatabase(other, [one])).rejects.toThrow(`The file ${other} is not a database.`)
})

test('a folder in place of the file is rejected with a readable message', async () => {
  await expect(openDatabase(folder, [one])).rejects.toThrow(`The database ${folder} cannot be opened:`)
})

test('a file cannot be opened a second time, even in the same process, until it is closed', async () => {
  const sentence = `The database ${file} is open in another process. Stop that process first, or set another DATA_DIR.`
  const first = await openDatabase(file, [one])
  await expect(openDatabase(file, [one])).rejects.toThrow(sentence)
  await insert(first, 'a')
  await first[Symbol.asyncDispose]()
  await using again = await openDatabase(file, [one])
  expect(await texts(again)).toEqual(['a'])
})

test('another process can open the file only after the first is killed, and no acknowledged write is lost', async () => {
  const acknowledged = new Map<string, number>()
  for (let kill = 0; kill < 5; kill += 1) {
    const writer = startWriter()
    await acknowledges(writer, acknowledged, 150)
    await expect(openSqliteStore({ file })).rejects.toThrow('is open in another process')
    const ended = once(writer, 'close')
    writer.kill('SIGKILL')
    await ended
    await using store = await openSqliteStore({ file })
    for (const [id, version] of acknowledged) {
      const record = await store.loadTask(id)
      expect(record?.version).toBeGreaterThanOrEqual(version)
      const parts = record?.version === 0 ? undefined : [{ kind: 'text', text: id.repeat(100) }]
      expect(record?.artifacts[0]?.parts).toEqual(parts)
    }
  }
  using database = new DatabaseSync(file, { readOnly: true })
  expect(database.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
  expect(acknowledged.size).toBeGreaterThanOrEqual(5 * 16)
})

function startWriter(): ChildProcess {
  const program = fileURLToPath(import.meta.resolve('@parley/engine/store/killed-writer.cases'))
  return spawn(process.execPath, [program, file], { stdio: ['ignore', 'pipe', 'inherit'] })
}

/** Resolves after the given number of lines, but keeps reading until the writer is dead. */
async function acknowledges(writer: ChildProcess, into: Map<string, number>, lines: number): Promise<void> {
  const enough = Promise.withResolvers<void>()
  let seen = 0
  if (writer.stdout === null) throw new Error('no output')
  createInterface(writer.stdout).on('line', (line) => {
    const [id = '', version] = line.split(' ')
    if (version !== undefined) into.set(id, Number(version))
    seen += 1
    if (seen === lines) enough.resolve()
  })
  writer.on('exit', () => enough.reject(new Error('the writer ended by itself')))
  await enough.promise
  writer.removeAllListeners('exit')
}

test('writes in one turn share a commit, and a write that throws has no effect on the others', async () => {
  await using database = await openDatabase(file, [one])
  const outcomes = await Promise.allSettled([
    insert(database, 'a'),
    database.write(() => {
      database.statement('INSERT INTO notes (text) VALUES (?)').run('half')
      throw new RangeError('changed my mind')
    }),
    insert(database, 'a'),
    insert(database, 'b'),
  ])
  expect(
    outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : String(outcome.reason))),
  ).toEqual(['a', 'RangeError: changed my mind', expect.stringContaining('UNIQUE'), 'b'])
  expect(await texts(database)).toEqual(['a', 'b'])
})

test('writes that exceed the limit of one transaction all run in order', async () => {
  await using database = await openDatabase(file, [one])
  const wanted = Array.from({ length: 3500 }, (_, number) => String(number).padStart(4, '0'))
  expect(await Promise.all(wanted.map((text) => insert(database, text)))).toEqual(wanted)
  expect(await texts(database)).toEqual(wanted)
})

test('a ping fails if there is no space for another page, and succeeds when there is', async () => {
  await using database = await openDatabase(file, [one])
  await insert(database, 'a')
  const limit = (pages: number) =>
    database.read(() => database.statement(`PRAGMA max_page_count = ${pages}`).get())
  await database.ping()
  await limit(1)
  await expect(database.ping()).rejects.toMatchObject({
    error: 'Unavailable',
    message: 'The storage is full',
  })
  await limit(1000)
  await expect(database.ping()).resolves.toBeUndefined()
})

test('pings fail for 10 s after a write failed for lack of space, even if small writes succeed', async () => {
  let now = 0
  await using database = await openDatabase(file, [one], { now: () => now })
  await insert(database, 'a')
  const pages = await database.read(() => database.statement('PRAGMA page_count').get()?.['page_count'])
  await database.read(() => database.statement(`PRAGMA max_page_count = ${Number(pages) + 10}`).get())
  await expect(insert(database, 'x'.repeat(1_000_000))).rejects.toMatchObject({
    message: 'The storage is full',
  })
  await insert(database, 'b')
  await expect(database.ping()).rejects.toMatchObject({ error: 'Unavailable' })
  now += 10_000
  await expect(database.ping()).resolves.toBeUndefined()
})

test('a ping fails permanently once the file is damaged on disk', async () => {
  let now = 0
  await using database = await openDatabase(file, [one], { now: () => now })
  for (let n = 0; n < 200; n += 1) await insert(database, `${n} ${'x'.repeat(1000)}`)
  await database.read(() => database.statement('PRAGMA wal_checkpoint(TRUNCATE)').get())
  await database.ping()
  const bytes = await readFile(file)
  await writeFile(file, bytes.fill(0xa5, 4096))
  now += 2000
  await expect(database.ping()).rejects.toMatchObject({ error: 'Unavailable' })
  await expect(database.ping()).rejects.toMatchObject({ message: 'The database file is damaged' })
})

test('writes that do not fit on a full disk reject with Unavailable, and writing continues when there is space', async () => {
  await using database = await openDatabase(file, [one])
  const limit = (pages: number) =>
    database.read(() => database.statement(`PRAGMA max_page_count = ${pages}`).get())
  await limit(10)
  const big = (letter: string) => insert(database, letter.repeat(100_000))
  const outcomes = await Promise.allSettled([insert(database, 'a'), big('x'), insert(database, 'b')])
  expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
  expect(outcomes[1]).toMatchObject({
    reason: { error: 'Unavailable', message: 'The storage is full', headers: { 'retry-after': '5' } },
  })
  await limit(1000)
  await big('x')
  expect(await texts(database)).toEqual(['a', 'b', 'x'.repeat(100_000)])
})

test('a failed commit rejects all its writes with Unavailable and stores none of them', async () => {
  await using database = await openDatabase(file, [
    one,
    'CREATE TABLE child (note TEXT REFERENCES notes (text) DEFERRABLE INITIALLY DEFERRED)',
  ])
  const orphan = database.write(() => database.statement('INSERT INTO child VALUES (?)').run('nobody'))
  const outcomes = await Promise.allSettled([insert(database, 'a'), orphan, insert(database, 'b')])
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
  expect(await texts(database)).toEqual([])
  expect(await insert(database, 'c')).toBe('c')
})

test('while another program holds the write lock, writes and pings reject with Unavailable but reads succeed', async () => {
  await using database = await openDatabase(file, [one])
  using other = new DatabaseSync(file)
  other.exec('BEGIN IMMEDIATE')
  const unavailable = { error: 'Unavailable', message: 'The storage does not answer' }
  await expect(insert(database, 'a')).rejects.toMatchObject(unavailable)
  await expect(database.ping()).rejects.toMatchObject(unavailable)
  expect(await texts(database)).toEqual([])
  other.exec('ROLLBACK')
  await database.ping()
  expect(await insert(database, 'a')).toBe('a')
})

test('readTogether sees a single snapshot while another program writes', async () => {
  await using database = await openDatabase(file, [one])
  await insert(database, 'a')
  using other = new DatabaseSync(file)
  const count = database.statement('SELECT count(*) AS count FROM notes')
  const seen = await database.readTogether(() => {
    const first = count.get()
    other.exec("INSERT INTO notes VALUES ('b')")
    return [first, count.get()]
  })
  expect(seen).toEqual([{ count: 1 }, { count: 1 }])
  expect(await texts(database)).toEqual(['a', 'b'])
})

test('readTogether does not block later calls when it throws or leaves rows unread', async () => {
  await using database = await openDatabase(file, [one])
  await insert(database, 'a')
  await insert(database, 'b')
  const mind = database.readTogether(() => {
    for (const _ of database.statement('SELECT text FROM notes').iterate()) throw new RangeError('my mind')
  })
  await expect(mind).rejects.toThrow(RangeError)
  await database.readTogether(() => {
    for (const _ of database.statement('SELECT text FROM notes').iterate()) return
  })
  expect(await insert(database, 'c')).toBe('c')
  expect(await database.readTogether(() => 1)).toBe(1)
  expect(await texts(database)).toEqual(['a', 'b', 'c'])
})

/** Observes the syncs of files until the end of the test. */
async function spyOnSync() {
  await using handle = await open(file)
  const sync = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'datasync')
  onTestFinished(() => sync.mockRestore())
  return sync
}

test('writeSoon waits for the disk only if another write in the transaction does', async () => {
  await using database = await openDatabase(file, [one])
  const sync = await spyOnSync()
  const syncs = () => sync.mock.calls.length
  expect(await database.writeSoon(syncs)).toBe(0)
  expect(syncs()).toBe(0)
  expect(await Promise.all([database.writeSoon(syncs), database.write(syncs)])).toEqual([0, 0])
  expect(syncs()).toBe(1)
  await database.writeSoon(syncs)
  expect(syncs()).toBe(1)
  await database.write(syncs)
  expect(syncs()).toBe(2)
})

test('a write is rejected if the disk does not confirm it, and the next one is durable through a checkpoint', async () => {
  await using database = await openDatabase(file, [one])
  const sync = await spyOnSync()
  sync.mockRejectedValueOnce(new Error('EIO'))
  await expect(insert(database, 'a')).rejects.toMatchObject({ error: 'Unavailable' })
  expect((await stat(`${file}-wal`)).size).toBeGreaterThan(0)
  expect(await insert(database, 'b')).toBe('b')
  expect((await stat(`${file}-wal`)).size).toBe(0)
  // The rejected write may have been stored, and it was.
  expect(await texts(database)).toEqual(['a', 'b'])
})

test('a killed process loses no write made by writeSoon', async () => {
  const program = `
    const { openDatabase } = await import(${JSON.stringify(new URL('./database.ts', import.meta.url))})
    const database = await openDatabase(${JSON.stringify(file)}, [${JSON.stringify(one)}])
    for (let number = 0; ; number += 1) {
      await database.writeSoon(() => database.statement('INSERT INTO notes VALUES (?)').run(String(number)))
      process.stdout.write(number + ' 0\\n')
    }`
  const acknowledged = new Map<string, number>()
  const writer = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await acknowledges(writer, acknowledged, 200)
  const ended = once(writer, 'close')
  writer.kill('SIGKILL')
  await ended
  await using database = await openDatabase(file, [one])
  const kept = new Set(await texts(database))
  expect([...acknowledged.keys()].filter((text) => !kept.has(text))).toEqual([])
  expect(await database.read(() => database.statement('PRAGMA integrity_check').all())).toEqual([
    { integrity_check: 'ok' },
  ])
})

test('a process under the permission model of Node can write', async () => {
  const program = `
    const { openDatabase } = await import(${JSON.stringify(new URL('./database.ts', import.meta.url))})
    await using database = await openDatabase(${JSON.stringify(file)}, [${JSON.stringify(one)}])
    await database.write(() => database.statement('INSERT INTO notes VALUES (?)').run('a'))`
  const flags = ['--permission', '--allow-fs-read=*', `--allow-fs-write=${folder}`]
  const writer = spawn(process.execPath, [...flags, '--input-type=module', '-e', program], {
    stdio: 'inherit',
  })
  expect(await once(writer, 'close')).toEqual([0, null])
  await using database = await openDatabase(file, [one])
  expect(await texts(database)).toEqual(['a'])
})

test('a ping writes to the file', async () => {
  await using database = await openDatabase(file, [one])
  const { size } = await stat(`${file}-wal`)
  await database.ping()
  expect((await stat(`${file}-wal`)).size).toBeGreaterThan(size)
})

test('closing completes pending writes, and later calls reject with Unavailable', async () => {
  const database = await openDatabase(file, [one])
  const last = insert(database, 'a')
  await database[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  expect(await last).toBe('a')
  await expect(database.writeSoon(() => 1)).rejects.toThrow('The store is closed')
  const closed = { error: 'Unavailable', message: 'The store is closed' }
  await expect(insert(database, 'b')).rejects.toMatchObject(closed)
  await expect(texts(database)).rejects.toMatchObject(closed)
  await expect(database.readTogether(() => 1)).rejects.toMatchObject(closed)
  await expect(database.ping()).rejects.toMatchObject(closed)
  await using again = await openDatabase(file, [one])
  expect(await texts(again)).toEqual(['a'])
})
