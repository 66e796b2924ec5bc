import type { AgentPolicy } from '@parley/wire/model/policy'
import { beforeEach, expect, test } from 'vitest'
import { agent, bearer, call, FakeAgent, gateway, gatewayForEachTest, post, saying } from './testing.ts'

gatewayForEachTest()

const id = '11111111-2222-4333-8444-555555555555'
const did = `did:parley:alice:secret:${id}`
const open: AgentPolicy = { rules: [{ effect: 'allow', callers: ['authenticated'] }], default: 'deny' }
const aliceOnly: AgentPolicy = { rules: [{ effect: 'allow', callers: ['client:alice'] }], default: 'deny' }
const skills = ['public', 'internal'].map((name) => ({
  id: name,
  name,
  description: `Reads ${name} ledgers`,
  tags: [],
  input_modes: ['text/plain'],
  output_modes: ['text/plain'],
}))
const limitedBob: AgentPolicy = {
  ...open,
  rules: [...open.rules, { effect: 'deny', callers: ['client:bob'], skills: ['internal'] }],
}

let secret: FakeAgent

beforeEach(async () => {
  await agent('french', 'Translates texts into French')
  secret = new FakeAgent()
  await secret.listen()
})

async function join(policy: AgentPolicy = open): Promise<void> {
  const more = { did, keys: ['key-1'], skills, card: { name: 'secret', skills } }
  await secret.register('secret', 'Audits secret ledgers', more)
  await setPolicy(policy)
}

function setPolicy(policy: AgentPolicy) {
  const stored = { ...policy, changedAt: '2026-11-22T10:00:00.000000+00:00', changedBy: 'operator' } as const
  return gateway().registry.setPolicy(id, stored, () => {})
}

const as = (client: string) => ({ authorization: bearer(client) })
const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 'one', method, params })
const taskId = crypto.randomUUID()

interface Sent {
  path: string
  body?: string
}
const message = { ...saying('Audit the secret ledgers').message, messageId: crypto.randomUUID() }
const messageOfA2A = {
  messageId: crypto.randomUUID(),
  role: 'ROLE_USER',
  parts: [{ text: 'Audit the secret ledgers' }],
}
const sent: Sent[] = [
  { path: '/agents/secret/', body: rpc('message/send', { message }) },
  { path: '/agents/secret/', body: 'no json' },
  { path: '/agents/secret' },
  { path: '/agents/secret/health' },
  { path: '/agents/secret/agent/skills' },
  { path: '/agents/secret/%2e%2e' },
  { path: '/agents/secret/api/payment-status/1' },
  { path: '/', body: rpc('message/send', { message }) },
  { path: '/', body: rpc('message/stream', { message }) },
  { path: '/', body: rpc('message/send', { message: { ...message, taskId } }) },
  { path: '/', body: rpc('tasks/get', { taskId }) },
  { path: '/', body: rpc('tasks/cancel', { taskId }) },
  { path: '/', body: rpc('tasks/list', {}) },
  { path: '/', body: rpc('contexts/list', {}) },
  { path: '/', body: rpc('contexts/clear', { contextId: taskId }) },
  { path: '/a2a/v1', body: rpc('SendMessage', { message: messageOfA2A }) },
  { path: '/a2a/v1', body: rpc('SendMessage', { message: messageOfA2A, tenant: 'secret' }) },
  { path: '/a2a/v1/secret/message:send', body: JSON.stringify({ message: messageOfA2A }) },
  { path: '/a2a/v1/secret/tasks' },
  { path: '/a2a/v1', body: rpc('ListTasks', {}) },
  { path: '/a2a/v0.3', body: rpc('message/stream', { message }) },
  { path: '/message:send', body: JSON.stringify({ message: messageOfA2A }) },
  { path: '/tasks' },
  { path: `/tasks/${taskId}` },
  { path: '/agents/secret/a2a/v1', body: rpc('SendMessage', { message: messageOfA2A }) },
  { path: '/agents/secret/a2a/v0.3', body: rpc('message/send', { message }) },
  { path: '/agents/secret/message:send', body: JSON.stringify({ message: messageOfA2A }) },
  { path: `/agents/secret/a2a/v1/tasks/${taskId}` },
  { path: '/agents/secret/extendedAgentCard' },
]

async function answerTo({ path, body }: Sent, headers: Record<string, string>) {
  const response = await fetch(`${gateway().addresses.public}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
    ...(body !== undefined && { body }),
  })
  const changing = new Set(['date', 'x-request-id', 'x-negotiation-id'])
  const text = await response.text()
  return {
    status: response.status,
    headers: [...response.headers].filter(([name]) => !changing.has(name)),
    text: text.replaceAll(/"negotiation_id":"[\da-f]{32}"/g, '"negotiation_id":"…"'),
  }
}

test('calls of callers that may not call an agent are answered as if it did not exist', async () => {
  const all = async () => {
    const answers: object[] = []
    for (const headers of [{}, as('bob'), { authorization: 'Bearer wrong' }])
      for (const one of sent) answers.push({ one, answer: await answerTo(one, headers) })
    return answers
  }
  const before = await all()
  await join(aliceOnly)
  expect(await all()).toEqual(before)
  gateway().registry.setStatus(id, 'unreachable')
  expect(await all()).toEqual(before)
  expect(secret.calls).toEqual([])
})

test('a caller that may call the agent reaches it by name and by negotiation', async () => {
  await join(aliceOnly)
  const direct = await post('/agents/secret/', rpc('message/send', { message }), as('alice'))
  expect(direct).toMatchObject({ status: 200 })
  const routed = await call('message/send', saying('Audit the secret ledgers'), as('alice'))
  expect(routed.headers.get('x-agent')).toBe('secret')
})

test('a policy that is changed during a task refuses the next request as for an agent that has left', async () => {
  await join()
  const { json } = await call('message/send', saying('Audit the secret ledgers'), as('bob'))
  const task = { task_id: json.result.id }
  expect((await call('tasks/get', task, as('bob'))).status).toBe(200)
  await setPolicy(aliceOnly)
  const calls = secret.calls.length
  for (const [method, params] of [
    ['tasks/get', task],
    ['tasks/cancel', task],
    ['tasks/resubscribe', task],
    ['message/send', saying('More', { taskId: task.task_id })],
    ['contexts/clear', { context_id: json.result.context_id }],
  ] as const) {
    const refused = await call(method, params, as('bob'))
    expect(refused).toMatchObject({ status: 503, json: { error: { data: { reason: 'agent_left' } } } })
    expect(refused.text).not.toContain('secret')
  }
  const list = await call('tasks/list', {}, as('bob'))
  expect(list.json.result).toEqual([])
  expect(list.headers.get('x-parley-incomplete')).toBeNull()
  expect(secret.calls).toHaveLength(calls)
})

test('a changed policy cuts the event streams of callers that it no longer allows, and no others', async () => {
  await join()
  secret.on['message/stream'] = ({ response, params }) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 'one', result: secret.take(params) })}\n\n`)
  }
  const stream = async (client: string, path: string) => {
    const response = await fetch(`${gateway().addresses.public}${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...as(client) },
      body: rpc('message/stream', saying('Audit the secret ledgers')),
    })
    expect(response.status).toBe(200)
    const reader = response.body?.getReader()
    await reader?.read()
    return {
      end: reader?.read().then(
        () => 'ended',
        () => 'cut',
      ),
      reader,
    }
  }
  const [routed, named] = [await stream('bob', '/'), await stream('bob', '/agents/secret/')]
  const allowed = await stream('alice', '/')
  await setPolicy(aliceOnly)
  expect(await Promise.all([routed.end, named.end])).toEqual(['cut', 'cut'])
  expect(await Promise.race([allowed.end, Promise.resolve('open')])).toBe('open')
  await allowed.reader?.cancel().catch(() => {})
})

test('a message that names a denied skill is refused with the deciding rule', async () => {
  await join(limitedBob)
  const named = (skill: string) => saying('Audit the ledgers', { metadata: { skill_id: skill } })
  const refused = await post('/agents/secret/', rpc('message/send', named('internal')), as('bob'))
  expect(refused).toMatchObject({
    status: 403,
    json: {
      id: 'one',
      error: {
        code: -32013,
        data: {
          reason: 'policy',
          agent: 'secret',
          skill: 'internal',
          rule: 'rule 2 (deny client:bob for internal)',
        },
      },
    },
  })
  const session = await post('/agents/secret/api/start-payment-session', '{"skill_id":"internal"}', as('bob'))
  expect(session.status).toBe(403)
  expect(secret.calls).toEqual([])
  expect((await post('/agents/secret/', rpc('message/send', named('public')), as('bob'))).status).toBe(200)
  expect((await post('/agents/secret/', rpc('message/send', named('internal')), as('alice'))).status).toBe(
    200,
  )
  // A message to a task of the agent is bound to it.
  const { json } = await call('message/send', saying('Reads public ledgers'), as('bob'))
  const next = await call(
    'message/send',
    saying('More', { taskId: json.result.id, metadata: { skillId: 'internal' } }),
    as('bob'),
  )
  expect(next).toMatchObject({ status: 403, json: { error: { data: { reason: 'policy' } } } })
})

test('the skills of a limited caller are those of every dialect and address', async () => {
  await join(limitedBob)
  const v1 = { message: { ...messageOfA2A, metadata: { skillId: 'internal' } } }
  const v03 = { message: { ...message, metadata: { skill_id: 'internal' } } }
  const calls: Sent[] = [
    { path: '/agents/secret/a2a/v1', body: rpc('SendMessage', v1) },
    { path: '/agents/secret/a2a/v1', body: rpc('SendStreamingMessage', v1) },
    { path: '/agents/secret/a2a/v0.3', body: rpc('message/stream', v03) },
    { path: '/agents/secret/', body: rpc('SendMessage', v1) },
    { path: '/agents/secret/message:send', body: JSON.stringify(v1) },
    { path: '/agents/secret/a2a/v1/any/message:stream', body: JSON.stringify(v1) },
    { path: '/a2a/v1', body: rpc('SendMessage', { ...v1, tenant: 'secret' }) },
    { path: '/', body: rpc('SendMessage', { ...v1, tenant: 'secret' }) },
    { path: '/a2a/v1/secret/message:send', body: JSON.stringify(v1) },
    { path: '/message:send', body: JSON.stringify({ ...v1, tenant: 'secret' }) },
  ]
  for (const one of calls) {
    const { status, text } = await answerTo(one, as('bob'))
    expect([one.path, status, text.includes('rule 2 (deny client:bob for internal)')]).toEqual([
      one.path,
      403,
      true,
    ])
  }
  expect(secret.calls).toEqual([])
})

test('a limited caller cannot hide the skill in a body that the gateway does not read', async () => {
  await join(limitedBob)
  const body = rpc('message/send', saying('x'.repeat(300_000), { metadata: { skill_id: 'internal' } }))
  expect((await post('/agents/secret/', body, as('bob'))).status).toBe(403)
  const chunked = await fetch(`${gateway().addresses.public}/agents/secret/`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...as('bob') },
    body: new Blob([body]).stream(),
    duplex: 'half',
  } as RequestInit)
  expect(chunked.status).toBe(400)
  expect((await post('/agents/secret/', body, { ...as('bob'), 'content-type': 'text/plain' })).status).toBe(
    400,
  )
  expect(secret.calls).toEqual([])
})

test('below /agents/{slug}/, a limited caller finds only its skills', async () => {
  await join(limitedBob)
  const get = (path: string) => answerTo({ path: `/agents/secret${path}` }, as('bob'))
  for (const path of ['/agent/skills', '/.well-known/agent-card.json', '/.well-known/agent.json']) {
    const { status, text } = await get(path)
    expect(`${status} ${text}`).toMatch(/^200 .*public/)
    expect(text).not.toContain('internal')
  }
  for (const path of ['/agent/skills/internal', '/agent/skills/internal/documentation'])
    expect(await get(path)).toMatchObject({ status: 404, text: expect.stringContaining('-32030') })
  const negotiation = { path: '/agents/secret/agent/negotiation', body: '{"task_summary":"x"}' }
  expect((await answerTo(negotiation, as('bob'))).status).toBe(403)
})

test('a limited caller reads neither the extended card nor the skills of the agent itself, however the path names them', async () => {
  await join(limitedBob)
  secret.get = () => ({ skills, name: 'secret' })
  const paths = [
    '/a2a/v1/secret/extendedAgentCard',
    '/agents/secret/extendedAgentCard',
    '/agents/secret/a2a/v1/any/extendedAgentCard',
    '/agents/secret/extendedAgent%43ard',
    '/agents/secret/agent/%73kills',
    '/agents/secret/agent/%73kills/internal',
    '/agents/secret/agent/skills/%69nternal',
  ]
  for (const path of paths) {
    const { text } = await answerTo({ path }, as('bob'))
    expect(`${path.replace('internal', '')} ${text}`).not.toContain('internal')
  }
  const negotiation = { path: '/agents/secret/agent/%6eegotiation', body: '{"task_summary":"x"}' }
  expect((await answerTo(negotiation, as('bob'))).status).toBe(403)
  expect(secret.calls).toEqual([])
})
