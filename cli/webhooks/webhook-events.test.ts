import { type ScriptedCall, scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { artifactEvent, artifactOf, status, task, taskId, textPart } from '@parley/tools/testing/wire-samples'
import type { WireEvent } from '@parley/wire/codecs/parley/shapes'
import { expect, test } from 'vitest'
import { runCli } from '../testing.ts'

const answer = artifactOf('a', 'answer', textPart('done'))
const life = [status(1, 'working'), artifactEvent(2, answer), status(3, 'completed')]
const watch = (url: string, ...more: string[]) =>
  runCli(['watch', taskId, '--agent', 'x', '--webhook', '--url', url, ...more])

test('past events come from tasks/events and later ones through a webhook, which is removed at the end', async () => {
  let registered: Config | undefined
  await using server = await scriptedAgent({
    'tasks/pushNotificationConfig/set': ({ params }) => {
      registered = params['push_notification_config'] as Config
      return { result: params }
    },
    'tasks/events': ({ params, earlier }) => {
      if (earlier === 0) setTimeout(() => void post(registered, life.slice(1)), 50)
      return page(life.slice(0, 1), params)
    },
    'tasks/pushNotificationConfig/delete': () => ({ result: {} }),
  })
  expect(await watch(server.url)).toEqual({
    code: 0,
    stdout: 'done\n',
    stderr: `· working\n· completed (task ${taskId})\n2 events by webhook, 1 by tasks/events.\n`,
  })
  expect(server.calls.at(-1)).toMatchObject({
    method: 'tasks/pushNotificationConfig/delete',
    params: { id: taskId, push_notification_config_id: registered?.id },
  })
  expect(registered?.token).toMatch(/^[\w-]{43}$/)
})

test('--json prints every event once and in order although deliveries are late, duplicated and missing', async () => {
  let registered: Config | undefined
  await using server = await scriptedAgent({
    'tasks/pushNotificationConfig/set': ({ params }) => {
      registered = params['push_notification_config'] as Config
      return { result: params }
    },
    'tasks/events': ({ params, earlier }) => {
      // The webhook never delivers number 2.
      if (earlier === 0) setTimeout(() => void post(registered, [life[2], life[0], life[0]]), 20)
      return page(earlier === 0 ? [] : life.slice(0, 2), params)
    },
    'tasks/pushNotificationConfig/delete': () => ({ result: {} }),
  })
  const { code, stdout } = await watch(server.url, '--json')
  expect(code).toBe(0)
  expect(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown),
  ).toEqual(life)
})

test('watch reads all pages of the log and ignores an earlier pause', async () => {
  const log = [
    status(1, 'working'),
    status(2, 'input-required', 'Which?'),
    status(3, 'working'),
    status(4, 'failed'),
  ]
  await using server = await scriptedAgent({
    'tasks/pushNotificationConfig/set': ({ params }) => ({ result: params }),
    'tasks/events': ({ params }) => page(log, { ...params, limit: 2 }),
    'tasks/pushNotificationConfig/delete': () => ({ result: {} }),
  })
  const said = await watch(server.url)
  expect(said.code).toBe(1)
  expect(said.stderr).toContain(`· working\n· input-required\n· working\n· failed (task ${taskId})\n`)
})

test('watch ends when the task waits for an answer, unless the answer was already given', async () => {
  let asked = 0
  await using server = await scriptedAgent({
    'tasks/pushNotificationConfig/set': ({ params }) => ({ result: params }),
    'tasks/events': ({ params }) =>
      page([status(1, 'working'), status(2, 'input-required', 'Which?')], params),
    'tasks/get': () => ({ result: (asked++, task('input-required')) }),
    'tasks/pushNotificationConfig/delete': () => ({ result: {} }),
  })
  const said = await watch(server.url)
  expect([said.code, asked]).toEqual([1, 1])
  expect(said.stderr).toContain('Which?')
})

test('a refused webhook causes exit code 1, names the required setting and registers nothing', async () => {
  await using server = await scriptedAgent({
    'tasks/pushNotificationConfig/set': () => ({
      error: { code: -32602, message: 'The host of the URL is not on the public internet (loopback).' },
      status: 400,
    }),
  })
  const { code, stderr } = await watch(server.url)
  expect(code).toBe(1)
  expect(stderr).toContain('(loopback). An address that is not public')
  expect(stderr).toContain('WEBHOOK_ALLOWED_HOSTS=127.0.0.1')
  expect(server.calls.length).toBe(1)
})

test('--webhook with an address registers that address', async () => {
  await using server = await scriptedAgent({
    'tasks/pushNotificationConfig/set': ({ params }) => ({ result: params }),
    'tasks/events': ({ params }) => page(life, params),
    'tasks/pushNotificationConfig/delete': () => ({ error: { code: -32603, message: 'oops' }, status: 500 }),
  })
  const argv = ['watch', taskId, '--webhook', 'https://here.example/hook', '--url', server.url]
  const { code, stderr } = await runCli(argv)
  expect(code).toBe(0)
  expect(stderr).toContain('The webhook was not removed: oops.')
  expect(server.calls[0]?.params).toMatchObject({
    push_notification_config: { url: 'https://here.example/hook' },
  })
})

interface Config {
  id: string
  url: string
  token: string
}

function page(log: WireEvent[], params: ScriptedCall['params']) {
  const { after_sequence: after, limit } = params as { after_sequence: number; limit: number }
  const events = log.filter(({ sequence = 0 }) => sequence > after)
  return { result: { events: events.slice(0, limit), more: events.length > limit } }
}

async function post(config: Config | undefined, events: unknown[]): Promise<void> {
  for (const event of events) {
    const headers = { authorization: `Bearer ${config?.token}` }
    // The command may have exited already.
    await fetch(config?.url ?? '', { method: 'POST', headers, body: JSON.stringify(event) }).catch(() => {})
  }
}
