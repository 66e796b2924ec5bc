import { agentWith, detail, row, timeOf } from '@parley/gateway/operator/tasks/testing'
import {
  agent,
  embeddedOAuth,
  fail,
  gateway,
  gatewayForAllTests,
  oauthClient,
  operatorClient,
} from '@parley/gateway/testing'
import { beforeAll, expect, test } from 'vitest'
import { runCli } from '../../testing.ts'

gatewayForAllTests(embeddedOAuth)

const ids = ['a', 'b', 'c'].map((letter) => `${letter.repeat(8)}-1111-4111-8111-111111111111`)
const [done = '', asks = '', child = ''] = ids
let [admin, caller] = ['', '']

beforeAll(async () => {
  admin = await (await operatorClient()).token({ scope: 'agent:read agent:write agent:admin' })
  caller = await (await oauthClient('A caller')).token()
  const sky = await agentWith('sky', [
    detail(done, 9, {
      state: 'completed',
      created_at: '2026-11-22T12:00:00.000Z',
      updated_at: '2026-11-22T12:00:09.000Z',
      events: [
        {
          sequence: 1,
          at: '2026-11-22T12:00:00.000Z',
          kind: 'status-update',
          state: 'submitted',
          text: null,
        },
        {
          sequence: 2,
          at: '2026-11-22T12:00:02.000Z',
          kind: 'status-update',
          state: 'working',
          text: 'Reading\u001b[2J',
        },
        {
          sequence: 3,
          at: '2026-11-22T12:00:09.000Z',
          kind: 'status-update',
          state: 'completed',
          text: null,
        },
      ],
      runs: [
        {
          started_at: '2026-11-22T12:00:02.000Z',
          ended_at: '2026-11-22T12:00:09.000Z',
          outcome: 'completed',
        },
      ],
      children: [{ agent: 'sea', task_id: child }],
    }),
  ])
  sky.on[`/operator/tasks/${done}/cancel`] = ({ response }) => fail(response, null, 400, -32002, {})
  const sea = await agentWith('sea', [
    row(asks, 5, {
      state: 'input-required',
      reason: 'Which port?',
      payment: { amount: '0.05', asset: '0x1', asset_name: 'USDC', network: 'eip155:84532' },
      expires_at: '2026-11-23T12:00:00.000Z',
    }),
    detail(child, 4, {
      parent: { agent: 'sky', task_id: done },
      webhooks: [
        {
          config_id: 'w',
          url: 'https://hooks.example/tea',
          dialect: null,
          state: 'failing',
          settled: 0,
          events: 1,
          attempts: 2,
          delivered: 0,
          dropped: {},
          last_status: 503,
          last_error: 'HTTP 503',
          last_attempt_at: timeOf(6),
        },
      ],
      payments: [
        {
          payment_id: 'p',
          state: 'settled',
          amount: '0.05',
          asset: '0x1',
          asset_name: 'USDC',
          network: 'eip155:84532',
          payer: null,
          tx_hash: null,
          created_at: timeOf(4),
          completed_at: timeOf(5),
        },
      ],
    }),
  ])
  sea.on[`/operator/tasks/${child}/cancel`] = ({ response }) =>
    void response.end(JSON.stringify({ task_id: child, state: 'canceled' }))
  await agent('newcomer', 'Waits for admission', { admitted: false, origin: 'registered', verified: false })
})

const cli = (argv: string[], token = admin) =>
  runCli([...argv, '--url', gateway().addresses.public, '--token', token])

test('tasks lists the tasks of all agents in 80 columns, filtered and page by page', async () => {
  const { code, stdout } = await cli(['tasks'])
  expect(code).toBe(0)
  const found = stdout.match(/^[a-c]{8}-\S+ +\w+ +\S+/gm)?.map((line) => line.replace(/ +/g, ' '))
  expect(found).toEqual([`${done} sky completed`, `${asks} sea input-required`, `${child} sea working`])
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
  const first = await cli(['tasks', '--limit', '2'])
  const [, cursor = ''] = /--cursor (\S+)/.exec(first.stderr) ?? []
  const second = await cli(['tasks', '--limit', '2', '--cursor', cursor, '--json'])
  expect(JSON.parse(second.stdout)).toMatchObject({ tasks: [{ task_id: child }], next_cursor: null })
  expect((await cli(['tasks', '--state', 'failed'])).stdout).toBe('No tasks.\n')
})

test('tasks shows a caller only its own tasks', async () => {
  expect(await cli(['tasks'], caller)).toMatchObject({ code: 0, stdout: 'No tasks.\n' })
})

test('task shows an operator the task of another owner on a time axis', async () => {
  const { code, stdout } = await cli(['task', done])
  expect(code).toBe(0)
  expect(stdout).toMatch(/^sky +completed +2\.000 s +7\.000 s +0\.000 s +\(this task\)$/m)
  expect(stdout).toMatch(new RegExp(`^  sea +working .* ${child}$`, 'm'))
  expect(stdout).toMatch(/^\+0\.000 s +sky +submitted$/m)
  expect(stdout).toMatch(/^\+2\.000 s +sky +working +"Reading"$/m)
  expect(stdout).toMatch(/ sea +payment of 0\.05 USDC +settled$/m)
  expect(stdout).toMatch(/ sea +webhook https:\/\/hooks\.example\/tea +failing, attempt 2$/m)
  expect(await cli(['task', done], caller)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('Task not found'),
  })
})

test('watch prints the events of a task of another owner', async () => {
  const { code, stderr } = await cli(['watch', done])
  expect([code, stderr]).toEqual([0, '· submitted\n· working  Reading\n· completed\n'])
})

test('cancel cancels the task of another owner, and states why an agent refuses', async () => {
  expect(await cli(['cancel', child])).toMatchObject({
    code: 0,
    stdout: `Task ${child} at sea is canceled.\n`,
  })
  expect(await cli(['cancel', done])).toMatchObject({
    code: 1,
    stderr: 'parley: no.\n',
  })
})

test('waiting lists the questions and the agents that wait for admission, with the next command', async () => {
  const { stdout } = await cli(['waiting'])
  expect(stdout).toContain(`${asks}  sea  input-required`)
  expect(stdout).toContain('"Which port?"')
  expect(stdout).toContain('0.05 USDC on eip155:84532, until 2026-11-23T12:00:00Z')
  expect(stdout).toContain('npx parley admit newcomer')
  expect((await cli(['waiting'], caller)).stdout).toBe('Nothing waits for a person.\n')
})

test('overview shows what needs attention with the command that shows it', async () => {
  const { stdout } = await cli(['overview'])
  expect(stdout).toContain('! newcomer waits for admission.')
  expect(stdout).toMatch(/^3 agents; tasks: 0 submitted, 1 working, 1 waiting$/m)
  expect(await cli(['overview'], caller)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('agent:admin'),
  })
})
