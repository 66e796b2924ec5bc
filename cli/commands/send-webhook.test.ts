import { scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { present, status, task } from '@parley/tools/testing/wire-samples'
import { expect, test } from 'vitest'
import { runCli } from '../testing.ts'

const url = 'http://127.0.0.1:7399/'
const modes = { acceptedOutputModes: ['*/*'] }
const wanted = { ...modes, push_notification_config: { id: expect.any(String), url, token: 'let-me-in' } }
const webhook = ['--webhook', url, '--webhook-token', 'let-me-in']

test('the webhook is sent with the message, whether or not it is streamed, and the token is not printed', async () => {
  await using server = await scriptedAgent({
    'message/stream': () => ({
      frames: [present(0, 'submitted'), status(1, 'working'), status(2, 'completed')],
    }),
    'message/send': () => ({ result: task('submitted') }),
  })
  const streamed = await runCli(['send', 'x', 'hello', '--url', server.url, ...webhook])
  const sent = await runCli(['send', 'x', 'hello', '--url', server.url, '--no-wait', ...webhook])
  expect([streamed.code, sent.code]).toEqual([0, 0])
  expect(server.calls.map(({ params }) => params['configuration'])).toEqual([wanted, wanted])
  expect(JSON.stringify([streamed, sent])).not.toContain('let-me-in')
})

test('the answer to a question does not repeat the webhook', async () => {
  await using server = await scriptedAgent({
    'message/stream': ({ earlier }) => ({
      frames: earlier === 0 ? [status(2, 'input-required', 'Which?')] : [status(4, 'completed')],
    }),
  })
  const argv = ['send', 'x', 'hello', '--url', server.url, ...webhook]
  expect((await runCli(argv, { tty: true, stdin: 'this\n' })).code).toBe(0)
  expect(server.calls.map(({ params }) => params['configuration'])).toEqual([wanted, modes])
})

test('--webhook-token without --webhook is incorrect usage with exit code 2, and nothing is sent', async () => {
  await using server = await scriptedAgent({})
  for (const more of [[], ['--no-wait']]) {
    const argv = ['send', 'x', 'hello', '--url', server.url, '--webhook-token', 'let-me-in', ...more]
    expect((await runCli(argv)).code).toBe(2)
  }
  expect(server.calls).toEqual([])
})
