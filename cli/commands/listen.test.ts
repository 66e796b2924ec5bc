import { spawn } from 'node:child_process'
import { once } from 'node:events'
import net from 'node:net'
import path from 'node:path'
import { PassThrough } from 'node:stream'
import { artifactEvent, artifactOf, status, taskId, textPart } from '@parley/tools/testing/wire-samples'
import { expect, test } from 'vitest'
import { main } from '../main.ts'
import { runCli } from '../testing.ts'

const answer = artifactOf('a', 'answer', textPart('forty\ntwo'))
const life = [status(1, 'working'), artifactEvent(2, answer), status(3, 'completed')]

test('listen prints its address and one line per event, and with --once it exits when the task ends', async () => {
  const listener = await listen('--once', taskId)
  expect(await listener.post(...life)).toEqual([200, 200, 200])
  expect(await listener.ended).toEqual({
    code: 0,
    stdout: [
      '11111111 #1 working',
      '11111111 #2 artifact answer: forty two',
      '11111111 #3 completed (final)',
      '',
    ].join('\n'),
    stderr: `Listening at ${listener.url}\n3 events of 1 tasks in 3 posts: 0 missing, 0 out of order, 0 repeated.\n`,
  })
})

test('--fail and --times reject each event that many times, then accept it', async () => {
  const listener = await listen('--once', '--fail', '503', '--times', '2')
  const [working, , completed] = life as [object, object, object]
  expect(await listener.post(working, working, working, completed, completed, completed)).toEqual([
    503, 503, 200, 503, 503, 200,
  ])
  const { code, stdout, stderr } = await listener.ended
  // Number 2 is missing.
  expect(code).toBe(1)
  expect(stdout).toContain('#1 working [answered with 503]\n')
  expect(stdout).toContain('#1 working [post 3 of it]\n')
  expect(stderr).toContain('! before #3 did not come: #2\n')
  expect(stderr).toContain('2 events of 1 tasks in 6 posts: 1 missing, 0 out of order, 0 repeated.')
})

test('listen reports late sequence numbers and duplicate events', async () => {
  const listener = await listen('--once')
  const [first, second, third] = [status(1, 'working'), status(2, 'input-required'), status(3, 'working')]
  await listener.post(first, third, second, second, status(4, 'completed'))
  const { code, stdout, stderr } = await listener.ended
  expect(code).toBe(1)
  expect(stdout).toContain('#2 input-required [post 2 of it, came before]\n')
  expect(stderr).toContain('! #2 came after a higher number\n')
  expect(stderr).toContain('4 events of 1 tasks in 5 posts: 0 missing, 1 out of order, 1 repeated.')
})

test('--json prints one JSON line per delivery, and the totals on stderr', async () => {
  const listener = await listen('--once', '--json')
  await listener.post(...life)
  const { stdout, stderr } = await listener.ended
  const lines = stdout.trimEnd().split('\n')
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual(
    life.map((event) => ({ event, post: 1, answered: 200, again: false, late: false, missing: [] })),
  )
  expect(JSON.parse(stderr.trimEnd().split('\n').at(-1) ?? '')).toEqual({
    totals: { tasks: 1, posts: 3, events: 3, repeated: 0, missing: 0, outOfOrder: 0 },
  })
})

test('requests without the token from --token get 401 and are not counted, and the token is not printed', async () => {
  const listener = await listen('--once', '--token', 'right-token')
  const [event] = [status(1, 'completed')]
  const as = (authorization?: string) =>
    listener.send(JSON.stringify(event), authorization === undefined ? {} : { authorization })
  expect(await as()).toBe(401)
  expect(await as('Bearer wrong-token')).toBe(401)
  expect(await as('right-token')).toBe(401)
  expect(await as('Bearer right-token')).toBe(200)
  const { stdout, stderr } = await listener.ended
  expect(stdout).toBe('11111111 #1 completed (final)\n')
  expect(stderr).toContain('! refused a post: without the right token')
  expect(`${stdout}${stderr}`).not.toMatch(/right-token|wrong-token/)
})

test.each([
  ['', 400],
  ['no JSON', 400],
  ['[]', 400],
  ['{"event_id":"1","sequence":0,"task_id":"t","kind":"status-update","status":{"state":"working"}}', 400],
  ['{"event_id":"1","sequence":1,"task_id":"t","kind":"status-update"}', 400],
  ['{"event_id":"1","sequence":1,"task_id":"t","kind":"artifact-update","artifact":{}}', 400],
])('a body of %j is not an event and gets %i', async (body, wanted) => {
  const listener = await listen('--once')
  expect(await listener.send(body)).toBe(wanted)
  expect(await listener.post(status(1, 'completed'))).toEqual([200])
  expect((await listener.ended).stderr).toContain('! refused a post: not an event of a task')
})

test('webhooks of A2A 1.0 and 0.3 are printed, and the end of the task ends the command', async () => {
  const listener = await listen('--once', taskId, '--token', 'T')
  const ids = { taskId, contextId: 'c' }
  const parts = [{ text: 'for\u001b[2Jty' }]
  const post = (body: object) =>
    fetch(listener.url, {
      method: 'POST',
      headers: { 'x-a2a-notification-token': 'T' },
      body: JSON.stringify(body),
    }).then(({ status: answered }) => answered)
  const bodies = [
    { artifactUpdate: { ...ids, artifact: { artifactId: 'a', name: 'answer', parts } } },
    { kind: 'task', id: taskId, contextId: 'c', status: { state: 'working' } },
    { statusUpdate: { ...ids, status: { state: 'TASK_STATE_COMPLETED' } } },
  ]
  for (const body of bodies) expect(await post(body)).toBe(200)
  const { code, stdout } = await listener.ended
  expect(stdout.split('\n')).toEqual([
    expect.stringMatching(/^11111111 A2A 1\.0 artifact answer: for.*ty$/),
    '11111111 A2A 0.3 working',
    '11111111 A2A 1.0 completed (final)',
    '',
  ])
  expect([code, stdout.includes('\u001b')]).toEqual([0, false])
})

test('control sequences in an event are removed, and it fits on one line', async () => {
  const listener = await listen('--once')
  await listener.post(status(1, 'failed', `\u001b[2Jred\nnext${'x'.repeat(500)}`))
  const { code, stdout } = await listener.ended
  expect([code, stdout.includes('\u001b'), stdout.split('\n').length]).toEqual([1, false, 2])
  expect(stdout.length).toBeLessThan(200)
})

test('listen exits only for the task given by --once, and a task first seen midway has no missing events', async () => {
  const listener = await listen('--once', taskId)
  await listener.post({ ...status(7, 'completed'), task_id: 'another', event_id: 'x' }, status(3, 'canceled'))
  const { code, stderr } = await listener.ended
  expect(code).toBe(1)
  expect(stderr).toContain('2 events of 2 tasks in 2 posts: 0 missing')
})

test.each([
  ['--port', '70000'],
  ['--port', '-1'],
  ['--fail', '200'],
  ['--fail', 'x'],
  ['--times', 'many'],
  ['--hang', '-5'],
  ['--once', 'seven'],
])('%s %s is incorrect usage with exit code 2', async (...argv) => {
  expect(await runCli(['listen', ...argv])).toMatchObject({ code: 2, stdout: '' })
})

test('a port that is in use causes exit code 1 and one sentence', async () => {
  const taken = net.createServer()
  await new Promise<void>((listening) => taken.listen(0, '127.0.0.1', listening))
  const { port } = taken.address() as net.AddressInfo
  const said = await runCli(['listen', '--port', String(port)])
  taken.close()
  expect(said).toEqual({
    code: 1,
    stdout: '',
    stderr: `parley: Cannot listen at 127.0.0.1, port ${port} (EADDRINUSE).\n`,
  })
})

test('Ctrl-C exits with code 0 and prints the totals, even during --hang', async () => {
  const bin = path.join(import.meta.dirname, '..', 'bin.mjs')
  const argv = [bin, 'listen', '--port', '0', '--hang', '60000']
  const child = spawn(process.execPath, argv, { stdio: ['ignore', 'pipe', 'pipe'] })
  let stderr = ''
  child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()))
  await expect.poll(() => stderr, { timeout: 100_000 }).toContain('Listening at')
  const url = /http:\S+/.exec(stderr)?.[0] ?? ''
  const printed = once(child.stdout, 'data')
  void fetch(url, { method: 'POST', body: JSON.stringify(status(1, 'working')) }).catch(() => {})
  await printed
  child.kill('SIGINT')
  expect(await once(child, 'close')).toEqual([0, null])
  expect(stderr).toContain('1 events of 1 tasks in 1 posts')
})

/** Starts the command and a client that posts to it. */
async function listen(...argv: string[]) {
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const ended = main(['listen', '--port', '0', ...argv], { stdin, stdout, stderr, env: {}, cwd: '/' }).then(
    (code) => ({ code, stdout: textIn(stdout), stderr: first + textIn(stderr) }),
  )
  await once(stderr, 'readable')
  const first = textIn(stderr)
  const url = /http:\S+/.exec(first)?.[0] ?? ''
  const send = async (body: string, headers: Record<string, string> = {}) =>
    (await fetch(`${url}hook`, { method: 'POST', body, headers })).status
  return {
    url,
    ended,
    send,
    async post(...events: object[]) {
      const statuses: number[] = []
      for (const event of events) statuses.push(await send(JSON.stringify(event)))
      return statuses
    },
  }
}

function textIn(stream: PassThrough): string {
  return ((stream.read() as Buffer | null) ?? '').toString()
}
