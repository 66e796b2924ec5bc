import { randomBytes } from 'node:crypto'
import {
  appendFile,
  type FileHandle,
  mkdtemp,
  open,
  readFile,
  rm,
  stat,
  truncate,
  writeFile,
} from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { LogGap, SegmentLog } from './segment-log.ts'

const id = randomBytes(16)
let folder = ''
let file = ''

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'parley-segment-log-'))
  file = path.join(folder, 'log')
})
afterEach(async () => {
  await rm(folder, { recursive: true })
})

async function emptyLog(): Promise<SegmentLog> {
  const { log } = await SegmentLog.open(file, { id, after: 0 })
  await log.reset(0)
  return log
}

/** The records that another process would find. */
async function found(after = 0): Promise<string[]> {
  const { log, records } = await SegmentLog.open(file, { id, after })
  await log[Symbol.asyncDispose]()
  return records.map(({ position, body }) => `${position} ${body}`)
}

/** Observes the syncs of files until the end of the test. */
async function spyOnSync() {
  await using handle = await open(`${file}.1`)
  const sync = vi.spyOn(Object.getPrototypeOf(handle) as FileHandle, 'datasync')
  onTestFinished(() => sync.mockRestore())
  return sync
}

test('records are found in the order in which they were appended, from the given position', async () => {
  await using log = await emptyLog()
  for (const body of ['a', '', 'ü\u2028'.repeat(100)]) await log.append(body)
  expect(log.position).toBe(3)
  expect(await found()).toEqual(['1 a', '2 ', `3 ${'ü\u2028'.repeat(100)}`])
  expect(await found(2)).toEqual([`3 ${'ü\u2028'.repeat(100)}`])
  expect(await found(3)).toEqual([])
  for (const name of [`${file}.1`, `${file}.2`]) expect((await stat(name)).mode & 0o777).toBe(0o600)
})

test('a record is synced before it is acknowledged, unless it need not be', async () => {
  await using log = await emptyLog()
  const sync = await spyOnSync()
  await log.append('a')
  expect(sync).toHaveBeenCalledTimes(1)
  await log.append('b', true)
  expect(sync).toHaveBeenCalledTimes(1)
  expect(await found()).toEqual(['1 a', '2 b'])
  await log.sync()
  await log.sync()
  expect(sync).toHaveBeenCalledTimes(2)
})

test('the two files take turns, and a released file is written from its beginning', async () => {
  await using log = await emptyLog()
  await log.append('a'.repeat(1000))
  expect(log.rotate()).toEqual({ file: `${file}.1`, last: 1 })
  await log.append('b')
  expect(log.rotate()).toBeUndefined()
  expect(await found()).toEqual([`1 ${'a'.repeat(1000)}`, '2 b'])
  log.release(1)
  expect(await found(1)).toEqual(['2 b'])
  const { size } = await stat(`${file}.1`)
  expect(log.rotate()).toEqual({ file: `${file}.2`, last: 2 })
  await log.append('c')
  expect((await stat(`${file}.1`)).size).toBe(size)
  expect(await found(1)).toEqual(['2 b', '3 c'])
})

test('a file with unsynced records remains the active one, so that none of them is lost before a later one', async () => {
  await using log = await emptyLog()
  await log.append('a', true)
  expect(log.rotate()).toBeUndefined()
  await log.sync()
  expect(log.rotate()).toEqual({ file: `${file}.1`, last: 1 })
})

test('when all records are released, the same file is written from its beginning', async () => {
  await using log = await emptyLog()
  for (const body of ['a', 'b']) await log.append(body)
  log.release(1)
  expect(log.activeBytes).toBeGreaterThan(0)
  log.release(2)
  expect(log.activeBytes).toBe(0)
  expect(log.rotate()).toBeUndefined()
  await log.append('c')
  // The second record of the earlier turn follows the new one.
  expect(await found(2)).toEqual(['3 c'])
})

test.each([
  ['shortened', (bytes: Buffer) => bytes.subarray(0, -1)],
  ['changed', (bytes: Buffer) => Buffer.concat([bytes.subarray(0, -1), Buffer.from('x')])],
  ['filled with zeros', (bytes: Buffer) => Buffer.concat([bytes.subarray(0, -20), Buffer.alloc(20)])],
  ['followed by noise', (bytes: Buffer) => Buffer.concat([bytes, randomBytes(4096)])],
])('a last record that is %s does not affect the records before it', async (how, damage) => {
  await using log = await emptyLog()
  for (const body of ['a', 'b', 'last']) await log.append(body)
  await writeFile(`${file}.1`, damage(await readFile(`${file}.1`)))
  expect(await found()).toEqual(['1 a', '2 b', ...(how === 'followed by noise' ? ['3 last'] : [])])
})

test('a missing record before others is an error, not a loss', async () => {
  await using log = await emptyLog()
  await log.append('a')
  log.rotate()
  await log.append('b')
  await truncate(`${file}.1`, 24)
  await expect(found()).rejects.toThrow(LogGap)
  expect(await found(1)).toEqual(['2 b'])
})

test('a log of another database is rejected', async () => {
  await using log = await emptyLog()
  await log.append('a')
  await expect(SegmentLog.open(file, { id: randomBytes(16), after: 0 })).rejects.toThrow(
    `The file ${file}.1 belongs to another database.`,
  )
})

test('files that were created but never written are empty', async () => {
  await (await SegmentLog.open(file, { id, after: 0 })).log[Symbol.asyncDispose]()
  await appendFile(`${file}.2`, Buffer.alloc(100))
  expect(await found()).toEqual([])
})

test('records cannot be appended before those of an earlier process are processed', async () => {
  const { log } = await SegmentLog.open(file, { id, after: 0 })
  await expect(log.append('a')).rejects.toThrow('must be reset')
  await log.reset(7)
  expect(await log.append('a')).toBe(8)
  await log[Symbol.asyncDispose]()
})

test('after a failed sync, nothing is appended until the log is reset', async () => {
  await using log = await emptyLog()
  await log.append('a')
  const sync = await spyOnSync()
  sync.mockRejectedValueOnce(new Error('EIO'))
  await expect(log.append('b')).rejects.toThrow('EIO')
  expect(log.hasFailed).toBe(true)
  await expect(log.append('c')).rejects.toThrow('must be reset')
  expect(log.position).toBe(1)
  await log.reset(1)
  expect(await log.append('d')).toBe(2)
  expect(await found(1)).toEqual(['2 d'])
})
