import { expect } from '@playwright/test'
import { skipWithoutServers, test } from './backends.ts'
import { Deployment } from './harness/deployment.ts'

test.describe.configure({ mode: 'serial' })
skipWithoutServers()

let deployment: Deployment

test.beforeAll(async ({ backends }) => {
  deployment = await Deployment.start(backends)
})
test.afterAll(async () => {
  await deployment?.remove()
})

interface Decision {
  chosen: string
  candidates: { agent: { slug: string }; score: number; reasons: string[] }[]
}

let token: string | undefined

async function rpc(method: string, params: object) {
  token ??= (await deployment.parley('token')).stdout.trim()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ jsonrpc: '2.0', id: '1', method, params })
  const response = await fetch(`${deployment.url}/`, { method: 'POST', headers, body })
  const id = response.headers.get('x-negotiation-id')
  const record = id === null ? undefined : await fetch(`${deployment.url}/negotiations/${id}`, { headers })
  return {
    status: response.status,
    agent: response.headers.get('x-agent'),
    body: (await response.json()) as {
      result?: { id: string }
      error?: { code: number; data: Record<string, unknown> }
    },
    decision: (await record?.json()) as Decision | undefined,
  }
}

const message = (text: string) => ({
  message: { role: 'user', kind: 'message', messageId: crypto.randomUUID(), parts: [{ kind: 'text', text }] },
})

const salesTable = 'analyze this table of sales:\nmonth,amount\nJanuary,10\nFebruary,25\nMarch,40\n'

for (const [text, agent, answer] of [
  ['calculate 12 * (3 + 4)', 'calculator', /84/],
  [
    'Summarize this text in one sentence: Rivers carry water to the sea. The sea gives it back as rain. Without rain the rivers would run dry.',
    'summarizer',
    /rain|water|rivers/i,
  ],
  [salesTable, 'data-analyst', /month|amount/i],
] as const) {
  test(`parley send - ${JSON.stringify(text.slice(0, 30))} reaches the ${agent}`, async () => {
    const sent = await deployment.parley('send', '-', text, '--out', deployment.dataDir)
    expect(sent).toEqual({
      code: 0,
      stdout: expect.stringMatching(answer),
      stderr: expect.stringContaining(`→ ${agent} (score `),
    })
    const routed = await rpc('message/send', message(text))
    expect(routed).toMatchObject({ status: 200, agent, decision: { chosen: agent } })
    expect(routed.decision?.candidates[0]?.reasons.length).toBeGreaterThan(0)
  })
}

test('the refusal of a text that no agent serves lists the best candidates and the reasons', async () => {
  const nonsense = 'zorbl quiffle the brimbly snargs'
  const { code, stderr } = await deployment.parley('send', '-', nonsense)
  expect(code).toBe(1)
  expect(stderr).toMatch(/ {2}[a-z-]+ \(score 0\.\d\d\): /)
  const refused = await rpc('message/send', message(nonsense))
  expect(refused.body.error).toMatchObject({ code: -32004, data: { reason: 'no_agent' } })
  expect(refused.body.error?.data['candidates']).toContainEqual(
    expect.objectContaining({ can_handle: false }),
  )
})

test('parley negotiate shows the ranking', async () => {
  const { code, stdout } = await deployment.parley('negotiate', 'convert 3 miles to kilometres')
  expect(code).toBe(0)
  expect(stdout).toMatch(/^RANK {2}AGENT.*\n1 +calculator +0\.\d{4} /)
})

test('the summarizer summarizes the result of the data-analyst', async () => {
  const table = await rpc('message/send', message(salesTable))
  const id = table.body.result?.id ?? ''
  const state = async () =>
    ((await rpc('tasks/get', { task_id: id })).body.result as unknown as { status: { state: string } }).status
      .state
  await expect.poll(state).toBe('completed')
  const { code, stdout, stderr } = await deployment.parley(
    'send',
    'summarizer',
    'Sum it up',
    '--reference',
    id,
  )
  expect(stderr + stdout).not.toContain('not found')
  expect(stdout.length).toBeGreaterThan(10)
  expect(code).toBe(0)
})

test('after a restart the gateway still finds the agent of a task', async () => {
  const sent = await rpc('message/send', message('calculate 2 + 3'))
  const id = sent.body.result?.id ?? ''
  await deployment.stop()
  await deployment.startAgain()
  const got = await rpc('tasks/get', { task_id: id })
  expect(got).toMatchObject({ status: 200, agent: 'calculator', body: { result: { id } } })
})
