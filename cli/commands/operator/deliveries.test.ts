import {
  agent,
  embeddedOAuth,
  gateway,
  gatewayForAllTests,
  oauthClient,
  operatorClient,
} from '@parley/gateway/testing'
import { beforeAll, expect, test } from 'vitest'
import { runCli } from '../../testing.ts'

gatewayForAllTests(embeddedOAuth)

const task = 'aaaaaaaa-1111-4111-8111-111111111111'
const at = '2026-11-22T12:00:00.000Z'
const row = {
  config_id: 'hook',
  task_id: task,
  owner: 'alice',
  url: 'https://example.com/hook',
  dialect: null,
  state: 'dropped',
  settled: 2,
  events: 2,
  attempts: 4,
  delivered: 1,
  dropped: { exhausted: 1 },
  last_status: 503,
  last_error: 'The receiver\u001b[2J responded with 503',
  last_attempt_at: at,
  set_at: at,
}
const tries = [
  { at, sequence: 2, duration_ms: 12, status: 503, error: row.last_error, next_attempt_at: null },
]
const bodies = [{ sequence: 1, settled: true, body: { text: 'hello\u202e' } }]
const usage = {
  day: '2026-11-22',
  owner: 'alice',
  tasks: 3,
  completed: 2,
  failed: 1,
  worked_ms: 1500,
  input_tokens: 12,
  output_tokens: 3,
  paid: [{ asset: '0xa', asset_name: 'USDC', network: 'eip155:84532', amount: '0.3', sandbox: true }],
}
let [admin, caller] = ['', '']

beforeAll(async () => {
  admin = await (await operatorClient()).token({ scope: 'agent:read agent:write agent:admin' })
  caller = await (await oauthClient('A caller')).token()
  const sky = await agent('sky', 'Draws the sky')
  sky.get = (path) => {
    if (path.startsWith('/operator/usage')) return { usage: [usage], next_cursor: null }
    return path.includes('/hook') ? { ...row, tries, bodies } : { deliveries: [row], next_cursor: null }
  }
})

const cli = (args: string[], token = admin) =>
  runCli([...args, '--url', gateway().addresses.public, '--token', token])

test('deliveries: webhooks with their outcome and reason, in 80 columns and without control characters', async () => {
  const { stdout, code } = await cli(['deliveries', '--state', 'dropped'])
  expect(code).toBe(0)
  expect(stdout).toContain(`${task}  sky  dropped`)
  expect(stdout).toContain('2 of 2 events settled, 4 attempts, last status 503, dropped: 1 exhausted')
  expect(stdout).not.toContain('\u001b')
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
})

test('deliveries <task>: attempts and bodies', async () => {
  const { stdout } = await cli(['deliveries', task])
  expect(stdout).toContain('2026-11-22T12:00:00Z  event 2  12 ms  The receiver')
  expect(stdout).toMatch(/event 1:\n {4}{"text":"hello/)
  expect(stdout).not.toContain('\u202e')
})

test.each([
  [['deliveries', '--resend'], 'needs a task, or --since'],
  [['deliveries', '--resend', '--since', 'soon'], 'Use a period such as 30m'],
  [['deliveries', task, '--config', 'other'], 'no such webhook'],
  [['usage', '--by', 'secret'], 'Use day, agent and caller'],
  [['usage', '--since', 'soon'], 'Use a day such as'],
])('%j fails and says what to do', async (args, text) => {
  const { stderr, code } = await cli(args)
  expect([code > 0, stderr.includes(text)]).toEqual([true, true])
})

test('another caller sees nothing of others', async () => {
  expect((await cli(['deliveries'], caller)).stdout).toContain('No task has a webhook.')
  expect((await cli(['usage', '--since', '2026-11-22'], caller)).stdout).toContain('No tasks and no payments')
})

test('usage: a line per caller with tasks, tokens and amounts', async () => {
  const { stdout } = await cli(['usage', '--since', '2026-11-22', '--until', '2026-11-22'])
  expect(stdout).toBe(
    'alice\n  3 tasks (2 completed, 1 failed), 1.5 s, 15 tokens\n  paid 0.3 USDC on eip155:84532 (test money)\n',
  )
})
