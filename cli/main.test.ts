import { readdirSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { runCli, temporaryFolder } from './testing.ts'

/** These commands have no file: `server/operate.ts` makes them. */
const ofOperator = ['admit', 'quarantine', 'release', 'remove']
const names = readdirSync(path.join(import.meta.dirname, 'commands'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
  .map((file) => path.basename(file, '.ts'))
  .concat(ofOperator)

test('parley --help lists exactly the existing commands', async () => {
  const { code, stdout } = await runCli(['--help'])
  expect(code).toBe(0)
  const listed = stdout.split('Commands:')[1]?.match(/^ {2}[a-z]+/gm)
  expect(listed?.map((name) => name.trim()).sort()).toEqual([...names, 'help'].sort())
})

test('parley --help shows the same arguments as the help of each command', async () => {
  const { stdout } = await runCli(['--help'])
  const listed = stdout
    .match(/(?<=^ {2})[a-z]+.*?(?= {2,})/gm)
    ?.filter((term) => term.split(' ')[0] !== 'help')
  const own = names.map(async (name) => {
    const help = await runCli([name, '--help'])
    return /^Usage: parley (.*)$/m.exec(help.stdout)?.[1]?.replace(/ \[options\]/, '')
  })
  expect(listed).toHaveLength(own.length)
  expect(new Set(listed)).toEqual(new Set(await Promise.all(own)))
})

test.each(names)('parley %s --help explains it, with exit code 0 and nothing done', async (name) => {
  using folder = temporaryFolder()
  const said = await runCli([name, '--help'], { cwd: folder.path })
  expect(said).toMatchObject({ code: 0, stderr: '' })
  expect(said.stdout).toContain(`Usage: parley ${name}`)
  expect(said.stdout).toContain('--json')
  expect((await runCli(['help', name])).stdout).toBe(said.stdout)
  expect(readdirSync(folder.path)).toEqual([])
})

test.each([
  ['no command', []],
  ['an unknown command', ['frob']],
  ['a command of Object', ['constructor']],
  ['an unknown option', ['--frob']],
  ['one argument too many', ['token', 'x']],
  ['a missing argument', ['watch']],
  ['a folder that is none', ['agent', 'nowhere']],
  ['a port that is none', ['gateway', '--port', '70000']],
])('%s is incorrect usage with exit code 2 and help only on stderr', async (_, argv) => {
  using folder = temporaryFolder()
  const said = await runCli(argv, { cwd: folder.path })
  expect(said).toMatchObject({ code: 2, stdout: '' })
  expect(said.stderr).not.toBe('')
})

test('parley --version prints the version of the package', async () => {
  expect((await runCli(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+(\+\w+)?\n$/)
})

test('up without an agents folder explains how to create an agent and exits with code 1', async () => {
  using folder = temporaryFolder()
  const said = await runCli(['up'], { cwd: folder.path })
  expect(said.code).toBe(1)
  expect(said.stderr).toContain('npx parley new hello')
})
