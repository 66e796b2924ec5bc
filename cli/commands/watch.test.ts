import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync } from 'node:fs'
import path from 'node:path'
import { scriptedAgent } from '@parley/tools/testing/scripted-agent'
import {
  artifactEvent,
  artifactOf,
  filePart,
  present,
  status,
  taskId,
  textPart,
} from '@parley/tools/testing/wire-samples'
import { expect, test } from 'vitest'
import { runCli, temporaryFolder } from '../testing.ts'

const answer = artifactOf('a', 'answer', textPart('done'), filePart('chart.svg', '<svg/>'))
const ended = [
  present(3, 'completed'),
  status(1, 'working'),
  artifactEvent(2, answer),
  status(3, 'completed'),
]

test('watch prints a task from start to end with its answer and names files without saving them', async () => {
  using folder = temporaryFolder()
  await using server = await scriptedAgent({ 'tasks/resubscribe': () => ({ frames: ended }) })
  const argv = ['watch', taskId, '--agent', 'data-analyst', '--url', server.url]
  expect(await runCli(argv, { cwd: folder.path })).toEqual({
    code: 0,
    stdout: 'done\n',
    stderr: `· working\nfile chart.svg (6 bytes), not saved\n· completed (task ${taskId})\n`,
  })
  expect(server.calls[0]).toMatchObject({
    path: '/agents/data-analyst/',
    params: { task_id: taskId, after_sequence: 0 },
  })
  expect(readdirSync(folder.path)).toEqual([])
})

test('--out saves the files of the answer', async () => {
  using folder = temporaryFolder()
  await using server = await scriptedAgent({ 'tasks/resubscribe': () => ({ frames: ended }) })
  const argv = ['watch', taskId, '--agent', 'data-analyst', '--out', '.', '--url', server.url]
  expect((await runCli(argv, { cwd: folder.path })).stderr).toContain('saved chart.svg')
  expect(readdirSync(folder.path)).toEqual(['chart.svg'])
})

test('--json prints every event as a line', async () => {
  await using server = await scriptedAgent({ 'tasks/resubscribe': () => ({ frames: ended }) })
  const said = await runCli(['watch', taskId, '--json', '--url', server.url])
  expect(said).toMatchObject({ code: 0, stderr: '' })
  const events = said.stdout.trimEnd().split('\n')
  expect(events.map((line) => JSON.parse(line) as unknown)).toEqual(ended.slice(1))
})

test.each([
  ['failed', 'out of memory'],
  ['input-required', 'Which column?'],
] as const)('a task that is %s: exit code 1 and what it says', async (state, text) => {
  await using server = await scriptedAgent({
    'tasks/resubscribe': () => ({ frames: [status(2, state, text)] }),
  })
  const said = await runCli(['watch', taskId, '--agent', 'x', '--url', server.url])
  expect(said.code).toBe(1)
  expect(said.stderr).toContain(text)
})

test('an unknown task causes exit code 1, and an invalid id causes exit code 2', async () => {
  await using server = await scriptedAgent({
    'tasks/resubscribe': () => ({ error: { code: -32001, message: 'Task not found' }, status: 404 }),
  })
  const said = await runCli(['watch', taskId, '--agent', 'x', '--url', server.url])
  expect(said).toEqual({ code: 1, stdout: '', stderr: 'parley: Task not found.\n' })
  expect((await runCli(['watch', 'seven', '--url', server.url])).code).toBe(2)
})

test('the error at a server without tasks asks for --agent', async () => {
  const error = { code: -32040, message: 'Not found', data: { reason: 'route' } }
  await using server = await scriptedAgent({ 'tasks/resubscribe': () => ({ error, status: 404 }) })
  const said = await runCli(['watch', taskId, '--url', server.url])
  expect(said).toMatchObject({ code: 1, stdout: '' })
  expect(said.stderr).toContain('Name one with --agent')
})

test('Ctrl-C exits immediately with code 0', async () => {
  await using server = await scriptedAgent({
    'tasks/resubscribe': () => ({ frames: [present(1, 'working'), status(1, 'working')], after: 'silence' }),
  })
  const bin = path.join(import.meta.dirname, '..', 'bin.mjs')
  const argv = [bin, 'watch', taskId, '--agent', 'x', '--url', server.url]
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'ignore', 'pipe'] })
  await once(child.stderr, 'data')
  child.kill('SIGINT')
  expect(await once(child, 'exit')).toEqual([0, null])
})
