import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readablePaths } from './readable-paths.ts'

let root: string

beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'parley-readable-'))
  for (const name of ['agent', 'disk/data/oauth', 'texts'])
    mkdirSync(path.join(root, name), { recursive: true })
  symlinkSync(path.join(root, 'disk/data'), path.join(root, 'data'))
  symlinkSync(path.join(root, 'data/oauth'), path.join(root, 'agent/link'))
})

afterEach(() => rmSync(root, { recursive: true }))

const pathsFor = (read: string) =>
  readablePaths({
    entry: path.join(root, 'agent/agent.js'),
    folder: path.join(root, 'agent'),
    read: [read],
    dataDir: path.join(root, 'data'),
  })

test('settings.json can name further paths', () => {
  expect(pathsFor('../texts')).toContain(path.join(root, 'texts'))
})

test.each(['..', '../data', '../data/oauth', '../disk', '../disk/data/oauth', 'link'])(
  'settings.json cannot name the data folder of the gateway, also not as %s',
  (read) => {
    expect(() => pathsFor(read)).toThrow('would include the data folder of the gateway')
  },
)
