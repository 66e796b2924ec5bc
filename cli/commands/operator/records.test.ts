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

test('the gateway learns from feedback, and learned shows and removes the examples', async () => {
  await succeeded(['learned', 'board', '--forget', '--yes'])
  const correction = await cli(['feedback', decision, '--wrong', '--right', 'board'])
  expect(correction.stderr).toContain('The gateway learned from it: npx parley learned sky')
  const { code, stdout } = await cli(['learned', 'board'])
  expect(code).toBe(0)
  for (const line of [
    'examples 1 (1 positive, 0 negative, 0 neutral)',
    'score    not raised yet: needs 3 more positive examples',
    'for      forecast (1), weather (1)',
    'against  -',
  ])
    expect(stdout.split('\n')).toContain(line)
  const [, caller = ''] = /^(\S+) +1 +1 +0 +\d{4}-\d\d-\d\d$/m.exec(stdout) ?? []
  const kept = await cli(['learned', 'board', '--forget'])
  expect([kept.code, kept.stderr]).toEqual([1, expect.stringContaining('Add --yes to confirm it.')])
  const one = await cli(['learned', 'board', '--forget', '--yes', '--caller', caller])
  expect(one.stdout).toBe('Forgotten: 1 example of board.\n')
  expect((await cli(['learned', 'board'])).stdout).toBe('Nothing has been learned about board.\n')
  const all = await cli(['learned', 'sky', '--forget', '--yes', '--json'])
  expect(JSON.parse(all.stdout)).toEqual({ agent: 'sky', forgotten: expect.any(Number) })
})

test.each([
  ['yes', 0, 'Forgotten: 1 example of board.\n', ''],
  ['no', 1, '', 'Nothing was forgotten.'],
])('learned --forget asks, and the answer %s ends with %i', async (answer, code, stdout, stderr) => {
  await succeeded(['feedback', decision, '--wrong', '--right', 'board'])
  const argv = ['learned', 'board', '--forget', '--url', gateway().addresses.public, '--token', admin]
  const asked = await runCli(argv, { tty: true, stdin: `${answer}\n` })
  expect([asked.code, asked.stdout]).toEqual([code, stdout])
  expect(asked.stderr).toContain('Forget everything that was learned about board? This cannot be undone.')
  expect(asked.stderr).toContain(stderr)
})

test.each([
  [['learned', 'sky', '--yes'], 2, '--caller and --yes belong to --forget'],
  [['learned', 'none'], 1, 'npx parley agents lists the agents'],
  [['learned', 'sky', '--forget', '--yes', '--caller', 'x'], 1, '--caller'],
  [['learned', 'sky', '--forget', '--yes', '--caller', 'xxxx'], 1, 'no examples of this caller'],
  [['feedback', 'decision', '--wrong', '--right', 'none'], 1, '--right: no agent with this name'],
  [['feedback', 'decision', '--wrong', '--right', 'sky'], 1, '--right: is the agent that was chosen'],
])('%j fails with the exit code %i and the next step', async (argv, code, text) => {
  const answer = await cli(argv.map((word) => (word === 'decision' ? decision : word)))
  expect([answer.code, answer.stderr]).toEqual([code, expect.stringContaining(text)])
})

test('only operators see what was learned', async () => {
  const refused = await cli(['learned', 'sky'], caller)
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('agent:admin')])
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
