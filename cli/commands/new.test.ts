import { execFile } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { runCli, temporaryFolder } from '../testing.ts'

const run = promisify(execFile)
const root = path.join(import.meta.dirname, '..', '..')

/** Creates the state after `npm install`, with links to the packages of the repository. */
function install(folder: string): void {
  mkdirSync(path.join(folder, 'node_modules', '@types'), { recursive: true })
  for (const name of ['parley', '@parley', '@types/node']) {
    const installed = path.join('node_modules', name)
    symlinkSync(path.join(root, installed), path.join(folder, installed))
  }
}

function json(...names: string[]): Record<string, unknown> {
  return JSON.parse(readFileSync(path.join(...names), 'utf8')) as Record<string, unknown>
}

test('new writes an agent that passes its own test and the type check in an empty folder', async () => {
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

test('a new package.json depends on this version or on the files that npm installed', async () => {
  using folder = temporaryFolder()
  await runCli(['new', 'hello'], { cwd: folder.path })
  expect(json(folder.path, 'package.json')).toMatchObject({
    type: 'module',
    scripts: { start: 'parley up', test: 'node --test "agents/**/*.test.ts"' },
    dependencies: {
      parley: expect.stringMatching(/^\^\d+\.\d+\.\d+$/),
      '@parley/agent': expect.stringMatching(/^\^\d+\.\d+\.\d+$/),
    },
  })
  using installed = temporaryFolder()
  mkdirSync(path.join(installed.path, 'node_modules'))
  const lock = {
    packages: {
      'node_modules/parley': { resolved: 'file:../parley-0.1.0.tgz' },
      'node_modules/@parley/agent': { resolved: 'file:../parley-agent-0.1.0.tgz' },
      'node_modules/@parley/kit': { resolved: 'file:../parley-kit-0.1.0.tgz' },
      'node_modules/zod': { resolved: 'https://registry.npmjs.org/zod/-/zod-4.6.7.tgz' },
    },
  }
  writeFileSync(path.join(installed.path, 'node_modules', '.package-lock.json'), JSON.stringify(lock))
  await runCli(['new', 'hello'], { cwd: installed.path })
  expect(json(installed.path, 'package.json').dependencies).toEqual({
    parley: 'file:../parley-0.1.0.tgz',
    '@parley/agent': 'file:../parley-agent-0.1.0.tgz',
    '@parley/kit': 'file:../parley-kit-0.1.0.tgz',
  })
})

test('new completes the package.json that npm install leaves behind and keeps its dependencies', async () => {
  using folder = temporaryFolder()
  const dependencies = { parley: 'file:parley-0.1.0.tgz' }
  writeFileSync(path.join(folder.path, 'package.json'), JSON.stringify({ dependencies }))
  const said = await runCli(['new', 'hello'], { cwd: folder.path })
  expect(said.stderr).toContain('completed package.json\n')
  expect(json(folder.path, 'package.json')).toMatchObject({ type: 'module', private: true, dependencies })
})

test('new keeps the files of an existing project and prints hints for missing settings', async () => {
  using folder = temporaryFolder()
  const manifest = '{"name": "mine", "devDependencies": {"vitest": "4.0.0"}}'
  writeFileSync(path.join(folder.path, 'package.json'), manifest)
  const said = await runCli(['new', 'hello'], { cwd: folder.path })
  expect(said.stderr).toContain('"type": "module"')
  expect(said.stderr).toContain('npm install parley @parley/agent')
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

test('new turns the package.json of npm init -y into an ES module project, and the agent passes its test', async () => {
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

test('new keeps the package.json of a CommonJS project with code and prints how to load agents', async () => {
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

test('new fails for an existing agent and overwrites nothing', async () => {
  using folder = temporaryFolder()
  mkdirSync(path.join(folder.path, 'agents', 'hello'), { recursive: true })
  const said = await runCli(['new', 'hello'], { cwd: folder.path })
  expect(said.code).toBe(1)
  expect(said.stderr).toContain('exists already')
  expect(readdirSync(folder.path)).toEqual(['agents'])
  expect(readdirSync(path.join(folder.path, 'agents', 'hello'))).toEqual([])
})

test.each(['Hello', '../up', '1st', 'a b', '', '-x', 'x'.repeat(41), 'a/b', 'ä', "a';b"])(
  'new rejects the name %j with exit code 2 and writes nothing',
  async (name) => {
    using folder = temporaryFolder()
    const said = await runCli(['new', '--', name], { cwd: folder.path })
    expect(said).toMatchObject({ code: 2, stdout: '' })
    expect(readdirSync(folder.path)).toEqual([])
  },
)

test('new fails with exit code 1 for an invalid package.json and writes nothing', async () => {
  using folder = temporaryFolder()
  writeFileSync(path.join(folder.path, 'package.json'), '{')
  expect((await runCli(['new', 'hello'], { cwd: folder.path })).code).toBe(1)
  expect(readdirSync(folder.path)).toEqual(['package.json'])
})

test('--json lists the files', async () => {
  using folder = temporaryFolder()
  const said = await runCli(['new', 'hello', '--json'], { cwd: folder.path })
  expect(JSON.parse(said.stdout)).toMatchObject({
    name: 'hello',
    files: expect.arrayContaining(['agents/hello/agent.ts', 'package.json']),
  })
})
