import { type ScriptedAnswer, scriptedAgent } from '@parley/tools/testing/scripted-agent'
import { expect, test } from 'vitest'
import { runCli } from '../testing.ts'

const rules = [
  { effect: 'allow', callers: ['client:alice', 'tag:team'] },
  { effect: 'deny', callers: ['client:bob'], skills: ['write'], note: 'on leave' },
]
const answer = (policy: object | null): ScriptedAnswer => ({
  status: 200,
  type: 'application/json',
  body: JSON.stringify({ agent: 'notes', policy, modified_at: null, modified_by: null }),
})
const path = '/registry/agents/notes/policy'

/** Runs the command against a gateway with this policy. Returns what was sent with PUT. */
async function run(argv: string[], policy: object | null = { rules, default: 'deny' }) {
  const sent: unknown[] = []
  await using server = await scriptedAgent({
    'GET /registry/agents/notes': () => ({
      ...answer(null),
      body: JSON.stringify({ slug: 'notes', skills: [{ id: 'a' }, { id: 'b' }] }),
    }),
    [`GET ${path}`]: () => answer(policy),
    [`DELETE ${path}`]: () => answer(null),
    [`PUT ${path}`]: ({ body }) => {
      sent.push(JSON.parse(body))
      return answer(JSON.parse(body) as object)
    },
  })
  const said = await runCli(['policy', 'notes', ...argv, '--url', server.url, '--token', 'operator'])
  return { ...said, sent, calls: server.calls.map(({ method }) => method) }
}

test('the command shows the rules with their numbers', async () => {
  expect(await run([])).toMatchObject({
    code: 0,
    stdout:
      '1. allow client:alice, tag:team\n2. deny client:bob for write  # on leave\ndefault deny: no other caller may call this agent\n',
  })
  expect((await run([], null)).stdout).toBe('No policy: every caller may call this agent.\n')
})

test.each<[string, string[], object | null, object]>([
  [
    'allow on an agent without a policy closes it to all others',
    ['allow', 'alice', 'did:web:a.example:*', '*'],
    null,
    {
      rules: [{ effect: 'allow', callers: ['client:alice', 'did:web:a.example:*', '*'] }],
      default: 'deny',
    },
  ],
  [
    'deny on an agent without a policy leaves it open to other clients',
    ['deny', 'tag:contractor', '--note', 'until May'],
    null,
    { rules: [{ effect: 'deny', callers: ['tag:contractor'], note: 'until May' }], default: 'allow' },
  ],
  [
    'a further rule keeps the default',
    ['deny', 'carol', '--skill', 'a', '--skill', 'b'],
    { rules: [], default: 'deny' },
    { rules: [{ effect: 'deny', callers: ['client:carol'], skills: ['a', 'b'] }], default: 'deny' },
  ],
  [
    'remove drops one rule',
    ['remove', '1'],
    { rules, default: 'deny' },
    { rules: [rules[1]], default: 'deny' },
  ],
  [
    'default changes the default',
    ['default', 'allow'],
    { rules, default: 'deny' },
    { rules, default: 'allow' },
  ],
])('%s', async (_what, argv, before, after) => {
  const { code, sent } = await run(argv, before)
  expect({ code, sent }).toEqual({ code: 0, sent: [after] })
})

test('a rule for a skill that the agent does not have causes a note', async () => {
  const said = await run(['deny', 'carol', '--skill', 'a', '--skill', 'delet'])
  expect(said).toMatchObject({
    code: 0,
    stderr: 'notes has no skill "delet", only a, b: is the name correct?\n',
  })
  expect((await run(['deny', 'carol', '--skill', 'a'])).stderr).toBe('')
})

test('reset removes the policy', async () => {
  expect(await run(['reset'])).toMatchObject({
    stdout: 'No policy: every caller may call this agent.\n',
    calls: [`DELETE ${path}`],
  })
})

test.each([
  [['allow']],
  [['allow', 'a b']],
  [['allow', 'did:parley:acme:*']],
  [['remove']],
  [['remove', '0']],
  [['remove', '1', '2']],
  [['remove', '1', '--skill', 'a']],
  [['default', 'maybe']],
  [['reset', 'now']],
  [['check']],
  [['check', 'a', 'b']],
  [['grant', 'a']],
])('%j is incorrect usage and sends nothing', async (argv) => {
  const { code, stdout, calls } = await run(argv)
  expect({ code, stdout, calls }).toEqual({ code: 2, stdout: '', calls: [] })
})

test('remove with a number beyond the rules changes nothing', async () => {
  expect(await run(['remove', '3'])).toMatchObject({
    code: 1,
    sent: [],
    stderr: 'parley: The policy has no rule 3.\n',
  })
})

test.each([
  [
    ['check', 'bob'],
    { allowed: false, rule: 'default deny', skills: null },
    1,
    'bob may not call notes: default deny\n',
  ],
  [
    ['check', 'alice', '--skill', 'read'],
    { allowed: true, rule: 'rule 1 (allow client:alice)', skills: null },
    0,
    'alice may use read of notes: rule 1 (allow client:alice)\n',
  ],
  [
    ['check', 'did:parley:b:c:d', '--for', 'alice'],
    { allowed: true, rule: 'rule 1 (allow *)', skills: ['read'] },
    0,
    'did:parley:b:c:d on behalf of alice may call notes, with read only: rule 1 (allow *)\n',
  ],
])('%j prints the decision and its rule', async (argv, decision, code, stdout) => {
  await using server = await scriptedAgent({
    [`GET ${path}/check`]: () => ({ status: 200, type: 'application/json', body: JSON.stringify(decision) }),
  })
  expect(
    await runCli(['policy', 'notes', ...argv, '--url', server.url, '--token', 'operator']),
  ).toMatchObject({
    code,
    stdout,
  })
  const query = argv.includes('--for') ? '?caller=client%3Aalice&delegate=did%3Aparley%3Ab%3Ac%3Ad' : ''
  expect(server.calls[0]?.path).toContain(`${path}/check${query}`)
})
