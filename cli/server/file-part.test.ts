import { writeFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../testing.ts'
import { fileParts, mimeTypeOf } from './file-part.ts'

test.each([
  ['some.CSV', 'text/csv'],
  ['a.tar.gz', 'application/octet-stream'],
  ['Makefile', 'application/octet-stream'],
  ['notes.md', 'text/markdown'],
  ['picture.jpeg', 'image/jpeg'],
])('%s is sent as %s', (name, type) => {
  expect(mimeTypeOf(name)).toBe(type)
})

test('a file is sent with its name but without its path', async () => {
  using folder = temporaryFolder()
  writeFileSync(path.join(folder.path, 'a.txt'), 'hi')
  expect(await fileParts([path.join(folder.path, 'a.txt')], '/')).toEqual([
    { kind: 'file', file: { name: 'a.txt', mimeType: 'text/plain', bytes: 'aGk=' } },
  ])
})
