import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { runCli, temporaryFolder } from '../testing.ts'

const run = promisify(execFile)
const root = path.join(import.meta.dirname, '..', '..')

/** As after `npm install`, with the clone in the place of the package. */
function install(folder: string): void {
  mkdirSync(path.join(folder, 'node_modules', '@types'), { recursive: true })
  symlinkSync(root, path.join(folder, 'node_modules', 'parley'))
  const types = path.join('node_modules', '@types', 'node')
  symlinkSync(path.join(root, types), path.join(folder, types))
}

function json(...names: string[]): Record<string, unknown> {
  return JSON.parse(readFileSync(path.join(...names), 'utf8')) as Record<string, unknown>
}

test('in an empty folder: an agent whose test passes as it comes out, and whose types hold', async () => {
  using folder = temporaryFolder()
  const said = await runCli(['new', 'hello'], { cwd: folder.path })
  expect(said.code).toBe(0)
  expect(said.stdout.trimEnd().split('\n')).toEqual([
    'package.json',
    'tsconfig.json',
    '.gitignore',
    'agents/hello/agent.ts',
    'agents/hello/agent.test.ts',
    'agents/hello/skills/hello.md',
    'agents/hello/README.md',
  ])
  install(folder.path)
  const { stdout } = await run(process.execPath, ['--test', 'agents/**/*.test.ts'], { cwd: folder.path })
  expect(stdout).toMatch(/pass 2\n/)
  await run(path.join(root, 'node_modules', '.bin', 'tsc'), [], { cwd: folder.path })
})

test('a new package.json names where parley was installed from, else its version', async () => {
  using folder = temporaryFolder()
  await runCli(['new', 'hello'], { cwd: folder.path })
  expect(json(folder.path, 'package.json')).toMatchObject({
    type: 'module',
    scripts: { start: 'parley up', test: 'node --test "agents/**/*.test.ts"' },
    dependencies: { parley: expect.stringMatching(/^\^\d+\.\d+\.\d+$/) },
  })
  using installed = temporaryFolder()
  mkdirSync(path.join(installed.path, 'node_modules'))
  const lock = { packages: { 'node_modules/parley': { resolved: 'file:../parley-0.1.0.tgz' } } }
  writeFileSync(path.join(installed.path, 'node_modules', '.package-lock.json'), JSON.stringify(lock))
  await runCli(['new', 'hello'], { cwd: installed.path })
  expect(json(installed.path, 'package.json').dependencies).toEqual({ parley: 'file:../parley-0.1.0.tgz' })
})

test('the package.json that npm install leaves behind is completed, its dependencies stay', async () => {
  using folder = temporaryFolder()
  const dependencies = { parley: 'file:parley-0.1.0.tgz' }
  writeFileSync(path.join(folder.path, 'package.json'), JSON.stringify({ dependencies }))
  const said = await runCli(['new', 'hello'], { cwd: folder.path })
  expect(said.stderr).toContain('completed package.json\n')
  expect(json(folder.path, 'package.json')).toMatchObject({ type: 'module', private: true, dependencies })
})

test('a project that is one already keeps its files; what it lacks is said', async () => {
  using folder = temporaryFolder()
  const manifest = '{"name": "mine", "devDependencies": {"vitest": "4.0.0"}}'
  writeFileSync(path.join(folder.path, 'package.json'), manifest)
  const said = await runCli(['new', 'hello'], { cwd: folder.path })
  expect(said.stderr).toContain('"type": "module"')
  expect(said.stderr).toContain('npm install parley')
  expect(readdirSync(folder.path).sort()).toEqual(['agents', 'package.json'])
  expect(readFileSync(path.join(folder.path, 'package.json'), 'utf8')).toBe(manifest)
  const written = readFileSync(path.join(folder.path, 'agents', 'hello', 'agent.test.ts'), 'utf8')
  expect(written).toContain("import { test } from 'vitest'")
})

const npmInit = {
  name: 'mine',
  version: '1.0.0',
  main: 'index.js',
  scripts: { test: 'echo "Error: no test specified" && exit 1' },
  type: 'commonjs',
}

test('the package.json of npm init -y becomes one of ES modules, whose agent loads and passes its test', async () => {
  using folder = temporaryFolder()
  writeFileSync(path.join(folder.path, 'package.json'), JSON.stringify(npmInit))
  const said = await runCli(['new', 'hello'], { cwd: folder.path })
  expect(said.stderr).toContain('completed package.json\n')
  expect(said.stderr).not.toContain('"type"')
  expect(json(folder.path, 'package.json')).toMatchObject({
    name: 'mine',
    type: 'module',
    scripts: { start: 'parley up', test: 'node --test "agents/**/*.test.ts"' },
  })
  install(folder.path)
  const { stdout } = await run(process.execPath, ['--test', 'agents/**/*.test.ts'], { cwd: folder.path })
  expect(stdout).toMatch(/pass 2\n/)
})

test('a CommonJS project with code of its own keeps its package.json, and is told how its agents load', async () => {
  using folder = temporaryFolder()
  writeFileSync(path.join(folder.path, 'package.json'), JSON.stringify(npmInit))
  writeFileSync(path.join(folder.path, 'index.js'), 'module.exports = 1\n')
  const said = await runCli(['new', 'hello'], { cwd: folder.path })
  expect(json(folder.path, 'package.json')).toEqual(npmInit)
  expect(said.stderr).toContain('agents/package.json')
  mkdirSync(path.join(folder.path, 'agents'), { recursive: true })
  writeFileSync(path.join(folder.path, 'agents', 'package.json'), '{"type": "module"}')
  install(folder.path)
  const { stdout } = await run(process.execPath, ['--test', 'agents/**/*.test.ts'], { cwd: folder.path })
  expect(stdout).toMatch(/pass 2\n/)
})

test('nothing is written over: an agent of that name makes the command fail', async () => {
  using folder = temporaryFolder()
  mkdirSync(path.join(folder.path, 'agents', 'hello'), { recursive: true })
  const said = await runCli(['new', 'hello'], { cwd: folder.path })
  expect(said.code).toBe(1)
  expect(said.stderr).toContain('exists already')
  expect(readdirSync(folder.path)).toEqual(['agents'])
  expect(readdirSync(path.join(folder.path, 'agents', 'hello'))).toEqual([])
})

test.each(['Hello', '../up', '1st', 'a b', '', '-x', 'x'.repeat(41), 'a/b', 'ä', "a';b"])(
  'the name %j is wrong use: exit code 2, nothing written',
  async (name) => {
    using folder = temporaryFolder()
    const said = await runCli(['new', '--', name], { cwd: folder.path })
    expect(said).toMatchObject({ code: 2, stdout: '' })
    expect(readdirSync(folder.path)).toEqual([])
  },
)

test('a package.json that cannot be understood: exit code 1, nothing written', async () => {
  using folder = temporaryFolder()
  writeFileSync(path.join(folder.path, 'package.json'), '{')
  expect((await runCli(['new', 'hello'], { cwd: folder.path })).code).toBe(1)
  expect(readdirSync(folder.path)).toEqual(['package.json'])
})

test('--json names the files', async () => {
  using folder = temporaryFolder()
  const said = await runCli(['new', 'hello', '--json'], { cwd: folder.path })
  expect(JSON.parse(said.stdout)).toMatchObject({
    name: 'hello',
    files: expect.arrayContaining(['agents/hello/agent.ts', 'package.json']),
  })
})
