import { execFile } from 'node:child_process'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterEach, expect, test } from 'vitest'
import { ProcessSessions } from './sessions.ts'

const script = fileURLToPath(new URL('../../tools/testing/stdio-mcp-server.mjs', import.meta.url))
const opened: ProcessSessions[] = []
const lines: string[] = []
afterEach(async () => {
  for (const one of opened.splice(0)) await one[Symbol.asyncDispose]()
  lines.length = 0
})

function start(args: string[] = [], messageMaxBytes?: number) {
  const sessions = new ProcessSessions(
    {
      command: process.execPath,
      args: [script, ...args],
      env: { ONLY: 'this' },
      cwd: path.dirname(script),
      log: (line) => lines.push(line),
      stopMs: 200,
      ...(messageMaxBytes !== undefined && { messageMaxBytes }),
    },
    { requestMs: 2000, callMs: 400, callMaxMs: 800 },
  )
  opened.push(sessions)
  return sessions
}

async function call(sessions: ProcessSessions, name: string, args = {}) {
  const session = await sessions.open('')
  const signal = new AbortController().signal
  const answer = await session.callTool({
    name,
    inputSchema: {},
    arguments: args,
    progress: () => {},
    signal,
  })
  return JSON.stringify(answer)
}

function isAlive(pid: string): boolean {
  try {
    return process.kill(Number(pid), 0)
  } catch {
    return false
  }
}

test('a server that ends at an unknown first request is started again and called as one of 2025', async () => {
  const session = await start(['strict']).open('')
  expect(session.info).toMatchObject({ era: 'legacy', revision: '2025-11-25', name: 'stdio' })
})

test('the process receives the given variables only', async () => {
  expect(await call(start(), 'list_environment')).toContain('"text":"ONLY"')
})

test('a process that has ended is started again by the next call', async () => {
  const sessions = start()
  await expect(call(sessions, 'die')).rejects.toThrow('The connection to the server ended')
  expect(await call(sessions, 'repeat_phrase', { phrase: 'back' })).toContain('back')
})

test('lines that are not messages are logged, and the call continues', async () => {
  expect(await call(start(), 'garbage')).toContain('clean')
  expect(lines).toContain('Loading…')
})

test('a second answer and one with another ID are ignored', async () => {
  const sessions = start()
  expect(await call(sessions, 'twice')).toContain('first')
  expect(await call(sessions, 'repeat_phrase', { phrase: 'next' })).toContain('next')
})

test('a message that is too large ends the process', async () => {
  await expect(call(start([''], 100_000), 'flood')).rejects.toThrow('The connection to the server ended')
  expect(lines.join()).toContain('too large')
})

test('a call without an answer fails after the time limit', async () => {
  await expect(call(start(), 'never')).rejects.toThrow('The server did not answer in time')
})

test('the end of the session ends the process and its children', async () => {
  const sessions = start()
  const [, pids = ''] = /"text":"([\d ]+)"/.exec(await call(sessions, 'process_id')) ?? []
  await sessions[Symbol.asyncDispose]()
  await expect.poll(() => pids.split(' ').filter(isAlive)).toEqual([])
  expect(pids.split(' ')).toHaveLength(2)
})

test('no process remains or is started after the end', async () => {
  const sessions = start()
  const opening = sessions.open('')
  opening.catch(() => {})
  await sessions[Symbol.asyncDispose]()
  await expect(opening).rejects.toThrow('The server has been stopped')
  await expect(sessions.open('')).rejects.toThrow('The server has been stopped')
})

test('an exit of this process ends a server that ignores the end of its input', async () => {
  const transport = new URL('./stdio-transport.ts', import.meta.url).href
  const server = 'console.error(process.pid); setInterval(() => {}, 1000)'
  const script = `
    const { stdioTransport } = await import(${JSON.stringify(transport)})
    const log = (pid) => process.stdout.write(pid, () => process.exit())
    const args = ['-e', ${JSON.stringify(server)}]
    await stdioTransport({ command: process.execPath, args, env: {}, cwd: '/', log }).start()`
  const run = promisify(execFile)
  const { stdout: pid } = await run(process.execPath, ['--input-type=module', '-e', script])
  expect(Number(pid)).toBeGreaterThan(1)
  await expect.poll(() => isAlive(pid)).toBe(false)
})

test('a program that does not exist is reported', async () => {
  const sessions = new ProcessSessions({ command: '/nowhere', args: [], env: {}, cwd: '/', log: () => {} })
  opened.push(sessions)
  await expect(sessions.open('')).rejects.toThrow('The server could not be started')
})
