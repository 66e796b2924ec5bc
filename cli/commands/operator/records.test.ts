import { setTimeout as delay } from 'node:timers/promises'
import {
  agent,
  embeddedOAuth,
  gateway,
  gatewayForAllTests,
  oauthClient,
  operatorClient,
  post,
  saying,
} from '@parley/gateway/testing'
import { beforeAll, expect, test } from 'vitest'
import { runCli } from '../../testing.ts'

gatewayForAllTests(embeddedOAuth)

let [admin, caller, task, decision] = ['', '', '', '']

const cli = (argv: string[], token = admin) =>
  runCli([...argv, '--url', gateway().addresses.public, '--token', token])

async function succeeded(argv: string[]): Promise<string> {
  const { code, stdout, stderr } = await cli(argv)
  if (code !== 0) throw new Error(`parley ${argv.join(' ')}: ${stderr}`)
  return stdout
}

beforeAll(async () => {
  admin = await (await operatorClient()).token({ scope: 'agent:read agent:write agent:admin' })
  caller = await (await oauthClient('A caller')).token()
  const sky = await agent('sky', 'Weather forecast for any city \u001b[2J')
  await agent('board', 'Plays chess')
  const message = {
    jsonrpc: '2.0',
    id: 1,
    method: 'message/send',
    params: saying('weather forecast \u001b[2J\u202e'),
  }
  const sent = await post('/', JSON.stringify(message), { authorization: `Bearer ${caller}` })
  task = sent.json.result.id
  decision = sent.headers.get('x-negotiation-id') ?? ''
  const changed = { card: { name: 'sky', description: 'Weather', version: '2\u202e' } }
  await succeeded(['admit', 'sky'])
  await sky.register('sky', 'Weather', changed)
  await succeeded(['quarantine', 'sky', '--reason', 'a test'])
  await succeeded(['release', 'sky'])
  // The audit log and the history are stored in the background.
  const history = () => succeeded(['history', 'sky'])
  while (!(await history()).includes('released')) await delay(50)
})

test('decisions lists decisions within 80 columns, filtered by agent and task', async () => {
  const { code, stdout } = await cli(['decisions', '--agent', 'sky'])
  expect([code, stdout.split('\n')[1]]).toEqual([
    0,
    expect.stringMatching(new RegExp(`^${decision}  sky +0\\.\\d\\d +accepted`)),
  ])
  expect(stdout.split('\n').filter((line) => line.length > 80)).toEqual([])
  expect((await cli(['decisions', '--agent', 'board'])).stdout).toBe('No decisions.\n')
  expect((await cli(['decisions', '--task', task], caller)).stdout).toContain(decision)
})

test('decisions <id> shows sub-scores as bars, reasons, weights and the text, without control characters', async () => {
  const { code, stdout } = await cli(['decisions', decision])
  expect(code).toBe(0)
  for (const text of ['chosen   sky', `task     ${task}`, 'tried    sky (answered)', 'skill_match 0.55', '█'])
    expect(stdout).toContain(text)
  expect(stdout).toContain('text     weather forecast')
  // oxlint-disable-next-line no-control-regex -- the output must not contain them
  expect(stdout).not.toMatch(/[\u001b\u202e]/)
})

test('feedback records a verdict about a decision, by its id or that of its task', async () => {
  expect((await cli(['feedback', task, '--wrong', '--right', 'board'], caller)).stdout).toMatch(
    /^wrong agent, better: board, said /,
  )
  const second = await cli(['feedback', decision, '--correct', '--text', 'fits'])
  expect(second.stdout.match(/^(wrong|right) agent/gm)).toEqual(['wrong agent', 'right agent'])
  expect((await cli(['feedback', crypto.randomUUID(), '--wrong'])).stderr).toContain(
    'No decision placed the task',
  )
})

test('feedback rates the caller’s own task', async () => {
  const { code, stdout } = await cli(['feedback', task, '--rating', '4', '--text', 'good'], caller)
  expect([code, stdout]).toEqual([0, 'The feedback is recorded with the task.\n'])
})

test.each([
  [['--rating', '6']],
  [['--wrong', '--correct']],
  [['--right', 'board']],
  [['--wrong', '--rating', '3']],
  [[]],
])('feedback with %j is refused with exit code 2', async (argv) => {
  expect((await cli(['feedback', task, ...argv])).code).toBe(2)
})

test('audit lists who did what, and refuses callers', async () => {
  const { stdout } = await cli(['audit', '--action', 'registry.*'])
  expect(stdout).toMatch(/allowed \S+\n {4}registry\.quarantine sky/)
  const refused = await cli(['audit'], caller)
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('agent:admin')])
})

test.each(['audit', 'decisions'])(
  '%s takes a period or a time for --since, and refuses others',
  async (command) => {
    const own = await cli([command, '--since', '1h', '--json'])
    const later = await cli([command, '--since', '2099-01-01T00:00:00Z'])
    const wrong = await cli([command, '--since', 'soon'])
    expect(JSON.parse(own.stdout)[command === 'audit' ? 'entries' : 'decisions']).not.toEqual([])
    expect([later.code, later.stdout]).toEqual([0, expect.stringMatching(/^No (entries|decisions)\.\n$/)])
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining('such as 30m, 2h or 3d')])
  },
)

test('history lists what happened to an agent, and --changes what changed since its admission', async () => {
  const { stdout } = await cli(['history', 'sky'])
  expect(stdout).toMatch(/Z released\n.*Z quarantined by \S+: a test\n.*card changed: /)
  const since = await cli(['history', 'sky', '--changes'])
  expect(since.stdout).toMatch(
    /changes since its admission at [\s\S]*description\n {2}- "Weather forecast[\s\S]*\n {2}\+ "Weather"\n/,
  )
  // oxlint-disable-next-line no-control-regex -- the output must not contain them
  expect(since.stdout).not.toMatch(/[\u001b\u202e]/)
})
