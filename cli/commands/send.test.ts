import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { scriptedAgent } from '@parley/tools/testing/scripted-agent'
import {
  artifactEvent,
  artifactOf,
  contextId,
  delta,
  filePart,
  present,
  status,
  task,
  taskId,
  textPart,
} from '@parley/tools/testing/wire-samples'
import { expect, test } from 'vitest'
import { runCli, temporaryFolder } from '../testing.ts'

const answer = artifactOf('a', 'answer', textPart('Hello, Ada!'))
const begun = [present(0, 'submitted'), status(1, 'working')]
const completed = [
  ...begun,
  delta('a', 'Hello'),
  delta('a', ', Ada!'),
  artifactEvent(2, answer),
  status(3, 'completed'),
]
const asks = [...begun, status(2, 'input-required', 'Which column?')]

test('send prints the answer to stdout and progress and task id to stderr, and exits with code 0', async () => {
  await using server = await scriptedAgent({ 'message/stream': () => ({ frames: completed }) })
  const said = await runCli(['send', 'greeter', 'Ada', '--url', server.url, '--token', 'secret'])
  expect(said).toEqual({
    code: 0,
    stdout: 'Hello, Ada!\n',
    stderr: `· submitted\n· working\n· completed (task ${taskId})\n`,
  })
  expect(server.calls[0]).toMatchObject({
    path: '/agents/greeter/',
    headers: { authorization: 'Bearer secret' },
    params: { message: { role: 'user', parts: [{ kind: 'text', text: 'Ada' }] } },
  })
})

test('a terminal shows the text as it is streamed, once, without escape sequences', async () => {
  const frames = [
    ...begun,
    delta('a', 'Hel\u001b[2Jlo'),
    delta('a', ', Ada!'),
    artifactEvent(2, artifactOf('a', 'answer', textPart('Hel\u001b[2Jlo, Ada!'))),
    status(3, 'completed'),
  ]
  await using server = await scriptedAgent({ 'message/stream': () => ({ frames }) })
  const said = await runCli(['send', 'greeter', 'Ada', '--url', server.url], { tty: true })
  expect(said.stdout).toBe('Hello, Ada!\n')
})

test('a terminal shows the whole text if deltas were lost', async () => {
  const frames = [...begun, delta('a', ', Ada!'), artifactEvent(2, answer), status(3, 'completed')]
  await using server = await scriptedAgent({ 'message/stream': () => ({ frames }) })
  const said = await runCli(['send', 'greeter', 'Ada', '--url', server.url], { tty: true })
  expect(said.stdout).toBe(', Ada!\nHello, Ada!\n')
})

test.each([
  ['failed', 'the disk is full'],
  ['rejected', 'I do not do that'],
  ['canceled', undefined],
] as const)('a task that ends in %s: exit code 1, the reason on stderr', async (state, reason) => {
  const frames = [...begun, status(2, state, reason)]
  await using server = await scriptedAgent({ 'message/stream': () => ({ frames }) })
  const said = await runCli(['send', 'greeter', 'Ada', '--url', server.url])
  expect(said).toMatchObject({ code: 1, stdout: '' })
  expect(said.stderr).toContain(reason ?? 'canceled')
})

test('--file, --data, --context, --task and --reference become the message', async () => {
  using folder = temporaryFolder()
  writeFileSync(path.join(folder.path, 'some.csv'), 'a,b\n1,2\n')
  await using server = await scriptedAgent({
    'message/stream': () => ({ frames: completed }),
    'tasks/get': () => ({ result: task('input-required') }),
  })
  const given = ['--file', 'some.csv', '--data', '{"n": 1}', '--context', contextId, '--task', taskId]
  const argv = ['send', 'greeter', 'look', ...given, '--reference', taskId, '--url', server.url]
  expect((await runCli(argv, { cwd: folder.path })).code).toBe(0)
  expect(server.calls[1]?.params.message).toMatchObject({
    contextId,
    taskId,
    referenceTaskIds: [taskId],
    parts: [
      { kind: 'text', text: 'look' },
      { kind: 'file', file: { name: 'some.csv', mimeType: 'text/csv', bytes: 'YSxiCjEsMgo=' } },
      { kind: 'data', data: { n: 1 } },
    ],
  })
})

test('send reads the text from stdin if it is "-"', async () => {
  await using server = await scriptedAgent({ 'message/stream': () => ({ frames: completed }) })
  await runCli(['send', 'greeter', '-', '--url', server.url], { stdin: 'Ada\n' })
  expect(server.calls[0]?.params.message).toMatchObject({ parts: [{ kind: 'text', text: 'Ada\n' }] })
})

test('send saves the files in the response inside the folder, whatever their names', async () => {
  using folder = temporaryFolder()
  const files = artifactOf('f', 'files', filePart('../../evil.sh', 'x'), filePart('chart.svg', '<svg/>'))
  const frames = [...begun, artifactEvent(2, files), status(3, 'completed')]
  await using server = await scriptedAgent({ 'message/stream': () => ({ frames }) })
  const argv = ['send', 'greeter', 'draw', '--out', 'made', '--url', server.url]
  const said = await runCli(argv, { cwd: folder.path })
  expect(said).toMatchObject({ code: 0, stdout: '' })
  expect(said.stderr).toContain('saved made/chart.svg (6 bytes)\n')
  expect(readdirSync(path.join(folder.path, 'made')).sort()).toEqual(['chart.svg', 'evil.sh'])
  expect(readFileSync(path.join(folder.path, 'made', 'chart.svg'), 'utf8')).toBe('<svg/>')
})

test('without --out, send saves files to parley-downloads, apart from the project’s files', async () => {
  using folder = temporaryFolder()
  const files = artifactOf('f', 'files', filePart('chart.svg', '<svg/>'))
  const frames = [...begun, artifactEvent(2, files), status(3, 'completed')]
  await using server = await scriptedAgent({ 'message/stream': () => ({ frames }) })
  const said = await runCli(['send', 'greeter', 'draw', '--url', server.url], { cwd: folder.path })
  expect(said.stderr).toContain('saved parley-downloads/chart.svg (6 bytes)\n')
  expect(readdirSync(folder.path)).toEqual(['parley-downloads'])
})

test('send prints data only if the answer has no text', async () => {
  const withData = (...text: string[]) => [
    ...begun,
    artifactEvent(2, artifactOf('a', 'answer', ...text.map(textPart), { kind: 'data', data: { n: 4 } })),
    status(3, 'completed'),
  ]
  await using server = await scriptedAgent({
    'message/stream': ({ earlier }) => ({ frames: earlier === 0 ? withData() : withData('four') }),
  })
  const argv = ['send', 'greeter', '2+2', '--url', server.url]
  expect((await runCli(argv)).stdout).toBe('{\n  "n": 4\n}\n')
  expect((await runCli(argv)).stdout).toBe('four\n')
})

test('--json prints the task, exits according to its state, and saves no files', async () => {
  using folder = temporaryFolder()
  const ended = task('completed', { artifacts: [artifactOf('f', 'x', filePart('x.txt', 'x'))] })
  await using server = await scriptedAgent({
    'message/stream': ({ earlier }) => ({ frames: earlier === 0 ? completed : asks }),
    'tasks/get': ({ earlier }) => ({ result: earlier === 0 ? ended : task('input-required') }),
  })
  const argv = ['send', 'greeter', 'Ada', '--json', '--url', server.url]
  expect(await runCli(argv, { cwd: folder.path })).toEqual({
    code: 0,
    stdout: `${JSON.stringify(ended)}\n`,
    stderr: '',
  })
  const paused = await runCli(argv, { cwd: folder.path })
  expect(paused.code).toBe(1)
  expect(JSON.parse(paused.stdout)).toMatchObject({ id: taskId, status: { state: 'input-required' } })
  expect(readdirSync(folder.path)).toEqual([])
})

test('without a terminal, send prints the question, the task and the command for the answer, and exits with code 1', async () => {
  await using server = await scriptedAgent({ 'message/stream': () => ({ frames: asks }) })
  const said = await runCli(['send', 'data-analyst', 'look', '--url', server.url])
  expect(said).toMatchObject({ code: 1, stdout: '' })
  expect(said.stderr).toContain('Which column?')
  expect(said.stderr).toContain(`npx parley send data-analyst --task ${taskId} "…"`)
})

test('the user answers a question on the terminal, and the same task continues', async () => {
  await using server = await scriptedAgent({
    'message/stream': ({ earlier }) => ({ frames: earlier === 0 ? asks : completed }),
  })
  const said = await runCli(['send', 'data-analyst', 'look', '--url', server.url], {
    tty: true,
    stdin: 'sales\n',
  })
  expect(said).toMatchObject({ code: 0, stdout: 'Hello, Ada!\n' })
  expect(said.stderr).toContain('Which column?')
  expect(server.calls[1]?.params.message).toMatchObject({ taskId, contextId, parts: [{ text: 'sales' }] })
})

test('an empty answer leaves the question open', async () => {
  await using server = await scriptedAgent({ 'message/stream': () => ({ frames: asks }) })
  const said = await runCli(['send', 'data-analyst', 'look', '--url', server.url], { tty: true, stdin: '\n' })
  expect(said.code).toBe(1)
  expect(said.stderr).toContain(`--task ${taskId}`)
})

test('the reply that accepts or refuses a bid is sent as data', async () => {
  const bids = [...begun, status(2, 'negotiation-bid-submitted', '5 for it')]
  await using server = await scriptedAgent({
    'message/stream': ({ earlier }) => ({ frames: earlier === 0 ? bids : completed }),
  })
  await runCli(['send', 'trader', 'do it', '--url', server.url], { tty: true, stdin: 'yes\n' })
  expect(server.calls[1]?.params.message).toMatchObject({ parts: [{ kind: 'data', data: { accept: true } }] })
})

test('an agent that does not stream receives the message and is polled', async () => {
  const noStream = () => ({ error: { code: -32004, message: 'Unsupported operation' }, status: 400 })
  await using server = await scriptedAgent({
    'message/stream': noStream,
    'message/send': () => ({ result: task('submitted') }),
    'tasks/get': ({ earlier }) => ({
      result: earlier < 2 ? task('working') : task('completed', { artifacts: [answer] }),
    }),
    'tasks/resubscribe': noStream,
  })
  const said = await runCli(['send', 'greeter', 'Ada', '--url', server.url])
  expect(said).toMatchObject({ code: 0, stdout: 'Hello, Ada!\n' })
})

test('--no-wait prints the id of the new task', async () => {
  await using server = await scriptedAgent({ 'message/send': () => ({ result: task('submitted') }) })
  const argv = ['send', 'greeter', 'Ada', '--no-wait', '--url', server.url]
  expect(await runCli(argv)).toEqual({ code: 0, stdout: `${taskId}\n`, stderr: '' })
  expect((await runCli([...argv, '--json'])).stdout).toBe(`${JSON.stringify(task('submitted'))}\n`)
})

test('--no-wait prints the text of an answer that is a Message, which has no task', async () => {
  const result = { kind: 'message', role: 'agent', messageId: taskId, parts: [textPart('Hello, Ada!')] }
  await using server = await scriptedAgent({ 'message/send': () => ({ result }) })
  const argv = ['send', 'greeter', 'Ada', '--no-wait', '--url', server.url]
  expect(await runCli(argv)).toEqual({
    code: 0,
    stdout: 'Hello, Ada!\n',
    stderr: 'greeter answered directly, without a task.\n',
  })
  expect((await runCli([...argv, '--json'])).stdout).toBe(`${JSON.stringify(result)}\n`)
})

test('an agent that does not stream may answer with a Message', async () => {
  const result = { kind: 'message', role: 'agent', messageId: taskId, parts: [textPart('Hello, Ada!')] }
  await using server = await scriptedAgent({
    'message/stream': () => ({ error: { code: -32004, message: 'Unsupported operation' }, status: 400 }),
    'message/send': () => ({ result }),
  })
  const argv = ['send', 'greeter', 'Ada', '--url', server.url]
  expect(await runCli(argv)).toMatchObject({ code: 0, stdout: 'Hello, Ada!\n' })
  expect(await runCli([...argv, '--json'])).toEqual({
    code: 0,
    stdout: `${JSON.stringify(result)}\n`,
    stderr: '',
  })
})

const unknownTask = { error: { code: -32001, message: 'Task not found', data: { taskId } }, status: 404 }

test('--task with an unknown id sends nothing, and the error suggests --new', async () => {
  await using server = await scriptedAgent({
    'tasks/get': () => unknownTask,
    'message/stream': () => ({ frames: completed }),
  })
  const said = await runCli(['send', 'greeter', 'Ada', '--task', taskId, '--url', server.url])
  expect(said).toEqual({
    code: 1,
    stdout: '',
    stderr: `parley: There is no task ${taskId} at greeter. Check the id, or add --new to start a new task with it.\n`,
  })
  expect(server.calls.map(({ method }) => method)).toEqual(['tasks/get'])
})

test('--task with --new starts a task with that id', async () => {
  await using server = await scriptedAgent({
    'tasks/get': () => unknownTask,
    'message/stream': () => ({ frames: completed }),
  })
  const argv = ['send', 'greeter', 'Ada', '--task', taskId, '--new', '--url', server.url]
  expect((await runCli(argv)).code).toBe(0)
  expect(server.calls.map(({ method }) => method)).toEqual(['message/stream'])
  expect(server.calls[0]?.params.message).toMatchObject({ taskId })
})

test('the error for --task with a token that may not read tasks explains how to skip the check', async () => {
  const error = { code: -32013, message: 'Insufficient scope', data: { required: ['agent:read'] } }
  await using server = await scriptedAgent({ 'tasks/get': () => ({ error, status: 403 }) })
  const said = await runCli(['send', 'greeter', 'Ada', '--task', taskId, '--url', server.url])
  expect(said.code).toBe(1)
  expect(said.stderr).toMatch(/may not read tasks.*--new/)
})

test.each([
  ['-32601', { error: { code: -32601, message: 'Method not found' }, status: 404 }],
  ['-32004', { error: { code: -32004, message: 'No agent can do it' }, status: 400 }],
  ['404 without an envelope', { status: 404, body: 'nothing here' }],
])('the error for "-" at a server that chooses no agent (%s) explains what to do', async (_, refusal) => {
  await using server = await scriptedAgent({ 'message/stream': () => refusal, 'message/send': () => refusal })
  const said = await runCli(['send', '-', 'hello', '--url', server.url])
  expect(said.code).toBe(1)
  expect(said.stderr).toMatch(/^parley: No agent was chosen: .+ Name one instead of "-"/)
  expect(server.calls[0]?.path).toBe('/')
})

test('the error for an unknown agent name refers to the list of agents', async () => {
  const error = { code: -32040, message: 'Not found', data: { reason: 'agent' } }
  await using server = await scriptedAgent({ 'message/stream': () => ({ error, status: 404 }) })
  const said = await runCli(['send', 'nobody', 'hello', '--url', server.url])
  expect(said).toMatchObject({ code: 1, stdout: '' })
  expect(said.stderr).toBe('parley: There is no agent "nobody" here; npx parley agents lists them.\n')
})

test('a server error is printed as one sentence, or as one object with --json, and the exit code is 1', async () => {
  const error = {
    code: -32602,
    message: 'Invalid params',
    data: { issues: [{ path: 'a', message: 'is bad' }] },
  }
  await using server = await scriptedAgent({ 'message/stream': () => ({ error, status: 400 }) })
  const argv = ['send', 'greeter', 'Ada', '--url', server.url]
  expect(await runCli(argv)).toEqual({
    code: 1,
    stdout: '',
    stderr: 'parley: Invalid params. a: is bad.\n',
  })
  const said = await runCli([...argv, '--json'])
  expect(said).toMatchObject({ code: 1, stdout: '' })
  expect(JSON.parse(said.stderr)).toMatchObject({ error: { code: -32602, status: 400, data: error.data } })
})

test.each([
  [
    { code: -32004, message: 'No agent can handle this task', data: { reason: 'no_agent' } },
    'No agent can handle this task.',
  ],
  [
    { code: -32042, message: 'Temporarily unavailable', data: { reason: 'scheduler' } },
    'Temporarily unavailable.',
  ],
  [
    { code: -32012, message: 'DID signature was not accepted', data: { reason: 'replayed' } },
    'DID signature was not accepted. The same signed request was sent before.',
  ],
])('an error message for people contains no internal codes for %j', async (error, sentence) => {
  await using server = await scriptedAgent({ 'message/send': () => ({ error, status: 503 }) })
  const said = await runCli(['send', 'greeter', 'Ada', '--no-wait', '--url', server.url])
  expect(said).toEqual({ code: 1, stdout: '', stderr: `parley: ${sentence}\n` })
})

test('a TLS mismatch is explained in one sentence', async () => {
  await using server = await scriptedAgent({})
  const said = await runCli(['send', 'greeter', 'Ada', '--url', server.url.replace('http:', 'https:')])
  expect(said.code).toBe(1)
  expect(said.stderr).toMatch(/^parley: Cannot reach \S+ the server does not use TLS.* Try http:\/\/ instead/)
  expect(said.stderr).not.toContain('SSL routines')
})

test('the error for an unreachable server names the address and explains what to do', async () => {
  const server = await scriptedAgent({})
  await server[Symbol.asyncDispose]()
  const said = await runCli(['send', 'greeter', 'Ada', '--url', server.url])
  expect(said.code).toBe(1)
  expect(said.stderr).toBe(
    `parley: Cannot reach ${server.url}/agents/greeter/: nothing is listening at this address. Is the server running (npx parley up), and is --url right?\n`,
  )
})

test.each([
  ['nothing to send', ['send', 'greeter']],
  ['an agent that cannot be a name', ['send', '../x', 'hi']],
  ['no agent', ['send']],
  ['a task that is no UUID', ['send', 'greeter', 'hi', '--task', '7']],
  ['data that is not JSON', ['send', 'greeter', '--data', '{']],
  ['data that is no object', ['send', 'greeter', '--data', '[1]']],
  ['--new without --task', ['send', 'greeter', 'hi', '--new']],
  ['a file that is not there', ['send', 'greeter', '--file', 'missing.csv']],
  ['a folder as file', ['send', 'greeter', '--file', '.']],
  ['an address that is none', ['send', 'greeter', 'hi', '--url', 'ftp://x']],
  ['an unknown option', ['send', 'greeter', 'hi', '--frob']],
])('send with %s exits with code 2 and prints nothing on stdout', async (_, argv) => {
  using folder = temporaryFolder()
  const said = await runCli(argv, { cwd: folder.path })
  expect(said).toMatchObject({ code: 2, stdout: '' })
  expect(said.stderr).not.toBe('')
})

test('send rejects files that are too large for a message before it sends anything', async () => {
  using folder = temporaryFolder()
  for (const name of ['a.bin', 'b.bin'])
    writeFileSync(path.join(folder.path, name), Buffer.alloc(4 * 1024 * 1024))
  const said = await runCli(['send', 'greeter', '--file', 'a.bin', '--file', 'b.bin'], { cwd: folder.path })
  expect(said.code).toBe(2)
  expect(said.stderr).toContain('b.bin has 4.0 MiB; the files of one message are limited to 7.0 MiB in total')
})
