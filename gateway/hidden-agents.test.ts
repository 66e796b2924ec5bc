import { parseNegotiation } from '@parley/negotiation/score/request'
import type { AgentPolicy } from '@parley/wire/model/policy'
import { beforeEach, expect, test } from 'vitest'
import { agent, bearer, FakeAgent, gateway, gatewayForEachTest, identityProvider } from './testing.ts'

gatewayForEachTest()

const did = 'did:parley:alice:secret:11111111-2222-4333-8444-555555555555'
const id = '11111111-2222-4333-8444-555555555555'
const weights = { skill_match: 0.55, io_compatibility: 0.2, performance: 0.15, load: 0.05, cost: 0.05 }
const aliceOnly: AgentPolicy = { rules: [{ effect: 'allow', callers: ['client:alice'] }], default: 'deny' }

let secret: FakeAgent

beforeEach(async () => {
  await agent('french', 'Translates texts into French')
  await agent('german', 'Translates texts into German')
  secret = new FakeAgent()
  await secret.listen()
})

/** Registers the agent and gives it the policy. */
async function hide(policy: AgentPolicy = aliceOnly, more: object = {}): Promise<void> {
  await secret.register('secret', 'Translates secret texts into French and German', {
    did,
    keys: ['key-1'],
    document: { id: did },
    ...more,
  })
  await setPolicy(policy)
}

async function setPolicy(policy: AgentPolicy | undefined): Promise<void> {
  const stored = policy && { ...policy, changedAt: '2026-11-22T10:00:00.000Z', changedBy: 'operator' }
  const entry = gateway().registry.findIncludingLeft('secret')
  await gateway().registry.setPolicy(entry?.id ?? '', stored as never, () => {})
}

interface Sent {
  method?: string
  path: string
  body?: object | undefined
}

/** The complete response, without what differs in each response. */
async function answerTo({ method = 'GET', path, body }: Sent, authorization?: string) {
  const response = await fetch(`${gateway().addresses.public}${path}`, {
    method,
    headers: {
      ...(authorization !== undefined && { authorization }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const text = await response.text()
  const changing = new Set(['date', 'x-request-id', 'x-negotiation-id'])
  return {
    status: response.status,
    headers: [...response.headers].filter(([name]) => !changing.has(name)),
    text: text
      .replaceAll(/"negotiation_id":"[\da-f]{32}"/g, '"negotiation_id":"…"')
      // The gateway checks its agents every few seconds.
      .replaceAll(/"last_seen":"[^"]*"/g, '"last_seen":"…"'),
  }
}

const negotiation = (more: object = {}) => ({
  method: 'POST',
  path: '/agent/negotiation',
  body: { task_summary: 'Translate this secret text into French', weights, ...more },
})

const requests: Sent[] = [
  { path: '/registry/agents' },
  { path: '/registry/agents?limit=2' },
  { path: '/registry/agents?q=secret' },
  { path: '/registry/agents?skill=secret' },
  { path: '/registry/agents?status=ready' },
  { path: '/registry/agents/secret' },
  { path: `/registry/agents/${id}` },
  { path: `/registry/agents/${encodeURIComponent(did)}` },
  { path: '/agent/skills' },
  { path: '/.well-known/ard.json' },
  { path: '/agents' },
  { path: '/agents/secret/mcp/server-card' },
  { method: 'POST', path: '/search', body: { query: { text: 'Translate this secret text' } } },
  { method: 'POST', path: '/explore', body: { resultType: { facets: [{ field: 'metadata.slug' }] } } },
  { path: '/agent/skills/secret' },
  { path: '/agent/skills/secret?agent=secret' },
  { path: '/.well-known/oauth-protected-resource/agents/secret/mcp' },
  { path: '/.well-known/agent.json' },
  { path: '/agents/secret/.well-known/agent.json' },
  { path: `/did/resolve?did=${encodeURIComponent(did)}` },
  { method: 'POST', path: '/did/resolve', body: { did } },
  negotiation(),
  negotiation({ limit: 1 }),
  negotiation({ required_tools: ['saw'] }),
  negotiation({ task_summary: 'secret' }),
]

/** The MCP endpoint. Its answer to callers that may call the agent depends on the protocol. */
const ping: Sent = {
  method: 'POST',
  path: '/agents/secret/mcp',
  body: { jsonrpc: '2.0', id: 1, method: 'ping' },
}

test('the answers to callers that may not call an agent equal those of a registry without it', async () => {
  const denied: [string, () => string | undefined][] = [
    ['anonymous', () => undefined],
    ['bob', () => bearer('bob')],
    ['an invalid token', () => 'Bearer wrong'],
  ]
  const isNegotiation = ({ path }: Sent) => path === '/agent/negotiation'
  const all = async () => {
    const answers: object[] = []
    for (const [who, authorization] of denied)
      for (const sent of [...requests, ping])
        if (!(isNegotiation(sent) && who === 'an invalid token'))
          answers.push({ who, sent, answer: await answerTo(sent, authorization()) })
    return answers
  }
  const before = await all()
  await hide()
  expect(await all()).toEqual(before)
  expect(gateway().registry.find('secret')?.id).toBe(id)
  // A hidden agent that is excluded is not counted either.
  gateway().registry.setStatus(id, 'unreachable')
  expect(await all()).toEqual(before)
})

test('a caller that may call the agent finds it everywhere', async () => {
  await hide()
  for (const sent of requests.filter(({ path }) => !path.includes('limit='))) {
    const { status, text } = await answerTo(sent, bearer('alice'))
    expect(`${status} ${text}`).toMatch(/^200 .*secret/s)
  }
})

test('an operator finds every agent', async () => {
  await hide()
  const operator = bearer('operator', 'agent:read agent:admin')
  for (const path of ['/registry/agents/secret', '/agent/skills', '/registry/agents'])
    expect((await answerTo({ path }, operator)).text).toContain('"secret"')
})

test('an agent that acts for a caller finds an agent only if both may call it', async () => {
  await hide({ rules: [{ effect: 'allow', callers: ['client:alice', 'client:agent-a'] }], default: 'deny' })
  const acting = (client: string, actor: string) =>
    `Bearer ${identityProvider().issue(client, { act: { sub: actor } })}`
  const finds = async (authorization: string) =>
    (await answerTo({ path: '/registry/agents/secret' }, authorization)).status
  expect(await finds(acting('alice', 'agent-a'))).toBe(200)
  expect(await finds(acting('alice', 'agent-b'))).toBe(404)
  expect(await finds(acting('bob', 'agent-a'))).toBe(404)
})

test('the owner of an entry reads it although it may not call the agent', async () => {
  await hide(aliceOnly, { owner: 'carol' })
  expect((await answerTo({ path: '/registry/agents/secret' }, bearer('carol'))).status).toBe(200)
  expect((await answerTo({ path: '/registry/agents' }, bearer('carol'))).text).not.toContain('"secret"')
})

test('an agent is public again after its policy was removed', async () => {
  await hide()
  await setPolicy(undefined)
  expect((await answerTo({ path: '/registry/agents/secret' })).status).toBe(200)
})

test('a rule for anonymous callers shows the agent without a token', async () => {
  await hide({
    rules: [
      { effect: 'allow', callers: ['*'] },
      { effect: 'deny', callers: ['client:bob'] },
    ],
    default: 'deny',
  })
  expect((await answerTo({ path: '/registry/agents/secret' })).status).toBe(200)
  expect((await answerTo({ path: '/registry/agents/secret' }, bearer('bob'))).status).toBe(404)
})

const skills = [
  ['public', 'Translates texts into French'],
  ['internal', 'Balances ledgers and audits accounts'],
].map(([name = '', description = '']) => ({
  id: name,
  name,
  description,
  tags: [],
  input_modes: ['text/plain'],
  output_modes: ['text/plain'],
}))

test('an agent with one allowed skill is visible with this skill only', async () => {
  const policy: AgentPolicy = {
    rules: [
      { effect: 'allow', callers: ['authenticated'] },
      { effect: 'deny', callers: ['client:bob'], skills: ['internal'] },
    ],
    default: 'deny',
  }
  const visible = { skills: skills.slice(0, 1), card: { name: 'secret', skills: skills.slice(0, 1) } }
  const answers = () => Promise.all(requests.map((sent) => answerTo(sent, bearer('bob'))))
  await hide({ rules: [{ effect: 'allow', callers: ['authenticated'] }], default: 'deny' }, visible)
  const withOneSkill = withoutVersion(await answers())
  await hide(policy, { skills, card: { name: 'secret', skills } })
  expect(withoutVersion(await answers())).toEqual(withOneSkill)
  const { text } = await answerTo({ path: '/registry/agents/secret' }, bearer('alice'))
  expect(text).toContain('internal')
})

/** The two registrations differ in their time and in the recorded changes of the card. */
function withoutVersion(answers: { text: string }[]) {
  return answers.map(({ text }) =>
    text
      .replaceAll(/"(since|last_seen|lease_until|registered_at|updatedAt)":"[^"]+"/g, '"$1":"…"')
      .replaceAll(/"card_changes":\[.*?\],"quarantine"/g, '"card_changes":[],"quarantine"'),
  )
}

test('negotiation matches only the skills that the caller may use', async () => {
  await hide(
    {
      rules: [
        { effect: 'allow', callers: ['authenticated'] },
        { effect: 'deny', callers: ['client:bob'], skills: ['internal'] },
      ],
      default: 'deny',
    },
    { skills, description: '', card: { name: 'secret', skills } },
  )
  const request = negotiation({ task_summary: 'Audit the accounts and balance the ledgers', min_score: 0.5 })
  expect(parseNegotiation(request.body)).toBeDefined()
  const agentsOf = async (client: string) => {
    const { text } = await answerTo(request, bearer(client))
    return JSON.parse(text) as { can_handle: boolean; agent: { slug: string } }
  }
  expect(await agentsOf('alice')).toMatchObject({ can_handle: true, agent: { slug: 'secret' } })
  expect(await agentsOf('bob')).toMatchObject({ can_handle: false })
})

test('a heartbeat of the hidden agent keeps it hidden, and a new registration too', async () => {
  await hide()
  gateway().registry.heartbeat(id, { queueDepth: 1 })
  expect((await answerTo({ path: '/registry/agents/secret' })).status).toBe(404)
  await secret.register('secret', 'Translates', { did, keys: ['key-1'] })
  expect((await answerTo({ path: '/registry/agents/secret' })).status).toBe(404)
  expect((await answerTo({ path: '/registry/agents/secret' }, bearer('alice'))).status).toBe(200)
})
