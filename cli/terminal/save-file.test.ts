import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../testing.ts'
import { safeName, saveFile } from './save-file.ts'

const bytes = Buffer.from('content')

test.each([
  ['report.pdf', 'report.pdf'],
  ['../../etc/passwd', 'passwd'],
  ['/etc/cron.d/job', 'job'],
  ['C:\\Windows\\evil.exe', 'evil.exe'],
  ['a/b\\c.txt', 'c.txt'],
  ['..', 'file'],
  ['.', 'file'],
  ['', 'file'],
  [undefined, 'file'],
  ['/', 'file'],
  ['a/', 'file'],
  ['   ', 'file'],
  ['.env', 'env'],
  ['..hidden', 'hidden'],
  ['-rf', 'rf'],
  ['~root', 'root'],
  ['a\u0000b.txt', 'ab.txt'],
  ['a\u001b[2J\nb.txt', 'a[2Jb.txt'],
  ['invoice\u202efdp.exe', 'invoicefdp.exe'],
  ['a<b>:"|?*c.txt', 'a_b______c.txt'],
  ['CON', '_CON'],
  ['nul.txt', '_nul.txt'],
  ['name. . ', 'name'],
  ['\ud800.txt', '\ufffd.txt'],
  ['日本語.txt', '日本語.txt'],
])('the name %j becomes the plain name %j', (name, plain) => {
  expect(safeName(name)).toBe(plain)
})

test.each([
  ['10,000 letters', `${'x'.repeat(10_000)}.csv`],
  ['10,000 letters of four bytes', `${'🎉'.repeat(10_000)}.csv`],
])('a name of %s is cut to at most 200 bytes including the extension', (_, name) => {
  const kept = safeName(name)
  expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(200)
  expect(kept.endsWith('.csv')).toBe(true)
})

test('an extension of 10,000 letters is cut like any name', () => {
  expect(Buffer.byteLength(safeName(`a.${'x'.repeat(10_000)}`))).toBe(200)
})

test('saving never overwrites a file but uses the next free number', async () => {
  using folder = temporaryFolder()
  writeFileSync(path.join(folder.path, 'a.txt'), 'mine')
  expect(await saveFile(folder.path, 'a.txt', bytes)).toBe(path.join(folder.path, 'a-1.txt'))
  expect(await saveFile(folder.path, 'a.txt', bytes)).toBe(path.join(folder.path, 'a-2.txt'))
  expect(readFileSync(path.join(folder.path, 'a.txt'), 'utf8')).toBe('mine')
  expect(readFileSync(path.join(folder.path, 'a-2.txt'), 'utf8')).toBe('content')
})

test('saving does not follow links out of the folder, not even dangling ones', async () => {
  using folder = temporaryFolder()
  using outside = temporaryFolder()
  const target = path.join(outside.path, 'target')
  symlinkSync(target, path.join(folder.path, 'a.txt'))
  expect(await saveFile(folder.path, 'a.txt', bytes)).toBe(path.join(folder.path, 'a-1.txt'))
  expect(existsSync(target)).toBe(false)
})

test.each(['../up.txt', '/tmp/abs.txt', '..\\up.txt', '..'])('%s stays in the folder', async (name) => {
  using folder = temporaryFolder()
  const inner = path.join(folder.path, 'new', 'inner')
  expect(path.dirname(await saveFile(inner, name, bytes))).toBe(inner)
  expect(readdirSync(folder.path)).toEqual(['new'])
  expect(readdirSync(inner)).toHaveLength(1)
})

test('saving reports an unwritable folder in one sentence', async () => {
  using folder = temporaryFolder()
  const file = path.join(folder.path, 'file')
  writeFileSync(file, '')
  await expect(saveFile(path.join(file, 'below'), 'a.txt', bytes)).rejects.toThrow(
    /cannot be made \(ENOTDIR\)/,
  )
})
