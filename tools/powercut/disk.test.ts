import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { DiskFile, DiskNames } from './disk.ts'

const never = () => false
const always = () => true
const write = (at: number, text: string, done = true) => ({ at, bytes: Buffer.from(text), done })

let target: string
beforeEach(() => {
  target = mkdtempSync(path.join(os.tmpdir(), 'parley-disk-'))
})
afterEach(() => rmSync(target, { recursive: true }))

function syncedFile(text: string): DiskFile {
  const file = new DiskFile()
  file.change(write(0, text))
  file.synced(file.covered())
  return file
}

test('a power cut loses the writes after the last sync of the file', () => {
  const file = syncedFile('synced')
  file.change(write(0, 'later!'))
  expect(file.afterCut(never, 4096).toString()).toBe('synced')
  expect(file.afterCut(always, 4096).toString()).toBe('later!')
})

test('a sync does not cover a write that has not returned when it begins', () => {
  const file = new DiskFile()
  const running = write(0, 'running', false)
  file.change(running)
  const covered = file.covered()
  running.done = true
  file.synced(covered)
  expect(file.afterCut(never, 4096).toString()).toBe('')
})

test('a write is torn at the boundaries of sectors of the file', () => {
  const file = new DiskFile()
  file.change(write(2, 'abcdef'))
  let sector = 0
  const second = () => (sector += 1) === 2
  expect(file.afterCut(second, 4)).toEqual(Buffer.from('\0\0\0\0cdef'))
})

test('a file that becomes shorter and longer again has zeros, not its old bytes', () => {
  const file = syncedFile('abcdef')
  file.change({ size: 2, done: true })
  file.change(write(4, 'x'))
  expect(file.afterCut(always, 4096)).toEqual(Buffer.from('ab\0\0x'))
})

test('a file is missing if its folder was not synced after its creation', () => {
  const names = new DiskNames('/data')
  names.set(['/data/kept', syncedFile('kept')])
  names.synced('/data')
  names.set(['/data/lost', syncedFile('lost')])
  names.afterCut(target, never, 4096)
  expect(readdirSync(target)).toEqual(['kept'])
})

test('an unsynced rename leaves the old name and the old file', () => {
  const names = new DiskNames('/data')
  const [old, next] = [syncedFile('old'), syncedFile('new')]
  names.set(['/data/file', old])
  names.set(['/data/draft', next])
  names.synced('/data')
  names.set(['/data/draft', undefined], ['/data/file', next])
  names.afterCut(target, never, 4096)
  expect(readFileSync(path.join(target, 'file'), 'utf8')).toBe('old')
  expect(readFileSync(path.join(target, 'draft'), 'utf8')).toBe('new')
})

test('files of a folder are missing if the name of the folder was not synced', () => {
  const names = new DiskNames('/data')
  names.set(['/data/inner', 'folder'])
  names.set(['/data/inner/file', syncedFile('text')])
  names.synced('/data/inner')
  names.afterCut(target, never, 4096)
  expect(readdirSync(target)).toEqual([])
})
