import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { testAgent } from '@parley/agent/testing'
import { expect, test } from 'vitest'
import { main } from './main.ts'
import { runCli } from './testing.ts'

/** Starts a real agent and returns the command-line options to reach it. */
function agentWithPause() {
  return testAgent(
    { handle: ({ text, ask }) => (text === 'start' ? ask('Go on?') : ['one', 'two']) },
    { env: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' } },
  )
}

test('watch --webhook prints all events of a task and removes its webhook', async () => {
  await using agent = await agentWithPause()
  const caller = agent.caller('alice')
  const paused = await caller.sendAndWait('start')
  const argv = ['watch', paused.id, '--webhook', '--url', agent.url, '--token', caller.token, '--json']
  // The task waits for an answer.
  expect((await runCli(argv)).code).toBe(1)
  await caller.sendAndWait({ text: 'go', taskId: paused.id })
  const said = await runCli(argv)
  expect([said.code, said.stderr]).toEqual([0, ''])
  const log = (await caller.call('tasks/events', { id: paused.id })) as { events: unknown[] }
  const told = said.stdout.trimEnd().split('\n')
  expect(told.map((line) => JSON.parse(line) as unknown)).toEqual(log.events)
  expect(await caller.call('tasks/pushNotificationConfig/list', { id: paused.id })).toEqual([])
})

test('watch --webhook receives the events of a running task through the webhook', async () => {
  const { promise: release, resolve } = Promise.withResolvers<void>()
  await using agent = await testAgent(
    { handle: () => release.then(() => 'done') },
    { env: { WEBHOOK_ALLOWED_HOSTS: '127.0.0.1' } },
  )
  const caller = agent.caller('alice')
  const task = await caller.send('start')
  const watching = runCli(['watch', task.id, '--webhook', '--url', agent.url, '--token', caller.token])
  const configs = () => caller.call('tasks/pushNotificationConfig/list', { id: task.id })
  await expect.poll(configs, { timeout: 100_000 }).toHaveLength(1)
  resolve()
  const { code, stdout, stderr } = await watching
  expect([code, stdout]).toEqual([0, 'done\n'])
  // An event that is committed while the command reads the log arrives both ways, and the first one counts.
  expect(stderr).toMatch(/1 events by webhook, 2 by|2 events by webhook, 1 by|3 events by webhook, 0 by/)
})

test('listen receives every event that send --webhook requested, starting with the first', async () => {
  await using agent = await agentWithPause()
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()]
  const argv = [
    'listen',
    '--port',
    '0',
    '--once',
    '--token',
    'let-me-in',
    '--fail',
    '503',
    '--times',
    '1',
    '--json',
  ]
  const listening = main(argv, { stdin, stdout, stderr, env: {}, cwd: '/' })
  await once(stderr, 'readable')
  const url = /http:\S+/.exec(String(stderr.read()))?.[0] ?? ''
  const webhook = ['--webhook', url, '--webhook-token', 'let-me-in']
  const caller = agent.caller('alice')
  const sent = await runCli(['send', '-', 'go', '--url', agent.url, '--token', caller.token, ...webhook])
  expect(sent.code).toBe(0)
  expect(await listening).toBe(0)
  const posts = String(stdout.read())
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as { post: number; answered: number; event: { sequence: number } })
  expect(posts.map(({ event, post, answered }) => [event.sequence, post, answered])).toEqual(
    [1, 2, 3, 4].slice(0, posts.length / 2).flatMap((sequence) => [
      [sequence, 1, 503],
      [sequence, 2, 200],
    ]),
  )
})

test('an agent that refuses the address explains why and which setting allows it', async () => {
  await using agent = await testAgent({ handle: () => 'done' }, { env: { WEBHOOK_ALLOWED_HOSTS: 'none' } })
  const caller = agent.caller('alice')
  const task = await caller.sendAndWait('hello')
  const said = await runCli(['watch', task.id, '--webhook', '--url', agent.url, '--token', caller.token])
  expect(said).toMatchObject({ code: 1, stdout: '' })
  expect(said.stderr).toContain('not on the public internet (loopback)')
  expect(said.stderr).toContain('WEBHOOK_ALLOWED_HOSTS=127.0.0.1')
  for (const more of [[], ['--no-wait']]) {
    const webhook = ['--webhook', 'http://127.0.0.1:7399/', ...more]
    const sent = await runCli(['send', '-', 'hello', '--url', agent.url, '--token', caller.token, ...webhook])
    expect(sent).toMatchObject({ code: 1, stdout: '' })
    expect(sent.stderr).toContain('not on the public internet (loopback)')
    expect(sent.stderr).toContain('WEBHOOK_ALLOWED_HOSTS=127.0.0.1')
  }
})
