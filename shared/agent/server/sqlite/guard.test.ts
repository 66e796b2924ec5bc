import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'

const guard = fileURLToPath(new URL('guard.ts', import.meta.url))
let folder: string
let foreign: string

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'parley-sqlite-'))
  foreign = path.join(folder, 'foreign.db')
  const database = new DatabaseSync(foreign)
  database.exec('CREATE TABLE t (x); INSERT INTO t VALUES (1)')
  database.close()
})

afterEach(() => rmSync(folder, { recursive: true }))

/** Runs code in a process with the permission model and returns its output. */
function run(code: string): string {
  const own = path.join(folder, 'own')
  const flags = [
    '--permission',
    `--allow-fs-read=${guard}`,
    `--allow-fs-read=${own}`,
    `--allow-fs-write=${own}`,
  ]
  const lines = [
    `import { guardSqlite } from ${JSON.stringify(pathToFileURL(guard).href)}`,
    'guardSqlite()',
    "const sqlite = await import('node:sqlite')",
    `const [own, foreign] = ${JSON.stringify([own, foreign])}`,
    code,
  ]
  const args = [...flags, '--input-type=module', '--eval', lines.join('\n')]
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  return `${stdout}${stderr}`
}

const attempts = [
  "const d = new sqlite.DatabaseSync(':memory:'); d.exec(`ATTACH '${foreign}' AS o`)",
  "const d = new sqlite.DatabaseSync(':memory:'); d.prepare('ATTACH ? AS o').run(foreign)",
  "const d = new sqlite.DatabaseSync(':memory:', { open: false }); d.open(); d.exec(`ATTACH '${foreign}' AS o`)",
  "const d = new sqlite.DatabaseSync(':memory:'); d.setAuthorizer(null); d.exec(`ATTACH '${foreign}' AS o`)",
  "const d = new sqlite.DatabaseSync(':memory:'); d.exec(`VACUUM INTO '${foreign}.copy'`)",
  "await sqlite.backup(new sqlite.DatabaseSync(':memory:'), `${foreign}.copy`)",
  'new sqlite.DatabaseSync(`file:${foreign}`)',
  'new sqlite.DatabaseSync(Buffer.from(`file:${foreign}`))',
  'new sqlite.DatabaseSync(new URL(`file:${foreign}?mode=ro`))',
  'new sqlite.DatabaseSync(foreign)',
  'new sqlite.DatabaseSync(foreign, { readOnly: true })',
  'process.cwd = () => own; new sqlite.DatabaseSync(`../foreign.db`)',
  "new (await import('node:sqlite')).default.DatabaseSync(foreign)",
  "new (process.getBuiltinModule('node:sqlite').DatabaseSync)(`file:${foreign}`)",
  'new (Object.getPrototypeOf(sqlite.DatabaseSync))(`file:${foreign}`)',
  'new sqlite.DatabaseSync.prototype.constructor(`file:${foreign}`)',
  "class Sub extends sqlite.DatabaseSync {}; new Sub(':memory:').exec(`ATTACH '${foreign}' AS o`)",
]

test.each(attempts)('with the permission model, an agent cannot open foreign databases: %s', (attempt) => {
  const output = run(`${attempt}\nconsole.log('gained')`)
  expect(output).toMatch(/not authorized|authorization denied|isolated agent|not a constructor/)
  expect(output).not.toContain('gained')
  expect(existsSync(`${foreign}.copy`)).toBe(false)
})

test('its own databases work, also VACUUM', () => {
  const output = run(`const d = new sqlite.DatabaseSync(own)
    d.exec('CREATE TABLE t (x); INSERT INTO t VALUES (7); VACUUM')
    d.close()
    d.open()
    console.log(d instanceof sqlite.DatabaseSync, d.prepare('SELECT x FROM t').get().x)`)
  expect(output).toContain('true 7')
})
