import { callerFault, policyIn, policyOf } from '@parley/wire/codecs/parley/policy'
import type { AgentPolicy } from '@parley/wire/model/policy'
import { expect, test } from 'vitest'
import { anonymousCaller, CompiledPolicy, type PolicyCaller } from './policy.ts'

const client = (id: string, ...tags: string[]): PolicyCaller => ({ id, tags })
const alice = client('alice')
const bob = client('bob', 'contractor')
const did = client('did:parley:carol:agent:1')
const skills = [{ id: 'read' }, { id: 'write' }]

const policies = {
  onlyAlice: { rules: [{ effect: 'allow', callers: ['client:alice'] }], default: 'deny' },
  notContractors: { rules: [{ effect: 'deny', callers: ['tag:contractor'] }], default: 'allow' },
  everybody: { rules: [{ effect: 'allow', callers: ['*'] }], default: 'deny' },
  withTokens: { rules: [{ effect: 'allow', callers: ['authenticated'] }], default: 'deny' },
  anonymous: { rules: [{ effect: 'allow', callers: ['anonymous'] }], default: 'deny' },
  allowAfterDeny: {
    rules: [
      { effect: 'deny', callers: ['tag:contractor'] },
      { effect: 'allow', callers: ['*'] },
    ],
    default: 'deny',
  },
  denyAfterAllow: {
    rules: [
      { effect: 'allow', callers: ['client:bob'] },
      { effect: 'deny', callers: ['tag:contractor'] },
    ],
    default: 'allow',
  },
  webDomain: { rules: [{ effect: 'allow', callers: ['did:web:acme.example:*'] }], default: 'deny' },
  oneDid: { rules: [{ effect: 'allow', callers: ['did:parley:carol:agent:1'] }], default: 'deny' },
  oneSkill: { rules: [{ effect: 'allow', callers: ['client:alice'], skills: ['read'] }], default: 'deny' },
  deniedSkill: {
    rules: [{ effect: 'deny', callers: ['client:alice'], skills: ['write'] }],
    default: 'allow',
  },
  deniedSkills: {
    rules: [{ effect: 'deny', callers: ['client:alice'], skills: ['write', 'read'] }],
    default: 'allow',
  },
  unlistedSkill: {
    rules: [{ effect: 'allow', callers: ['client:alice'], skills: ['old'] }],
    default: 'deny',
  },
  empty: { rules: [], default: 'deny' },
  emptyAllow: { rules: [], default: 'allow' },
} satisfies Record<string, AgentPolicy>

test.each<[keyof typeof policies, PolicyCaller, string | undefined, boolean, string]>([
  ['onlyAlice', alice, undefined, true, 'rule 1 (allow client:alice)'],
  ['onlyAlice', bob, undefined, false, 'default deny'],
  ['onlyAlice', client('Alice'), undefined, false, 'default deny'],
  ['onlyAlice', client('client:alice'), undefined, false, 'default deny'],
  ['onlyAlice', anonymousCaller, undefined, false, 'default deny'],
  ['notContractors', alice, undefined, true, 'default allow'],
  ['notContractors', bob, undefined, false, 'rule 1 (deny tag:contractor)'],
  ['notContractors', anonymousCaller, undefined, false, 'default deny'],
  ['everybody', anonymousCaller, undefined, true, 'rule 1 (allow *)'],
  ['everybody', alice, 'read', true, 'rule 1 (allow *)'],
  ['withTokens', anonymousCaller, undefined, false, 'default deny'],
  ['withTokens', bob, undefined, true, 'rule 1 (allow authenticated)'],
  ['anonymous', anonymousCaller, undefined, true, 'rule 1 (allow anonymous)'],
  ['anonymous', alice, undefined, false, 'default deny'],
  ['anonymous', client('anonymous'), undefined, false, 'default deny'],
  ['allowAfterDeny', bob, undefined, false, 'rule 1 (deny tag:contractor)'],
  ['allowAfterDeny', alice, undefined, true, 'rule 2 (allow *)'],
  ['denyAfterAllow', bob, undefined, false, 'rule 2 (deny tag:contractor)'],
  [
    'webDomain',
    client('did:web:acme.example:bots:a'),
    undefined,
    true,
    'rule 1 (allow did:web:acme.example:*)',
  ],
  ['webDomain', client('did:web:acme.example'), undefined, false, 'default deny'],
  ['webDomain', client('did:web:acme.example.evil.test:a'), undefined, false, 'default deny'],
  ['oneDid', did, undefined, true, 'rule 1 (allow did:parley:carol:agent:1)'],
  ['oneDid', client('did:parley:carol:agent:12'), undefined, false, 'default deny'],
  ['oneSkill', alice, undefined, true, 'rule 1 (allow client:alice for read)'],
  ['oneSkill', alice, 'read', true, 'rule 1 (allow client:alice for read)'],
  ['oneSkill', alice, 'write', false, 'default deny'],
  ['deniedSkill', alice, undefined, true, 'default allow'],
  ['deniedSkill', alice, 'write', false, 'rule 1 (deny client:alice for write)'],
  ['deniedSkill', alice, 'read', true, 'default allow'],
  ['deniedSkill', bob, 'write', true, 'default allow'],
  ['empty', alice, undefined, false, 'default deny'],
  ['emptyAllow', alice, undefined, true, 'default allow'],
  ['emptyAllow', anonymousCaller, undefined, false, 'default deny'],
  ['empty', { ...alice, operator: true }, undefined, true, 'operator'],
  // A delegate may not do more than the caller, and the caller not more than the delegate.
  ['onlyAlice', { ...alice, delegate: did }, undefined, false, 'default deny'],
  ['oneDid', { ...alice, delegate: did }, undefined, false, 'default deny'],
  ['everybody', { ...alice, delegate: did }, undefined, true, 'rule 1 (allow *)'],
  ['notContractors', { ...alice, delegate: bob }, undefined, false, 'rule 1 (deny tag:contractor)'],
])('policy %s, caller %j, skill %s: %s by %s', (name, caller, skill, allowed, rule) => {
  expect(new CompiledPolicy(policies[name]).decide(caller, skill)).toEqual({ allowed, rule })
})

test.each<[keyof typeof policies, PolicyCaller, 'all' | 'none' | string[]]>([
  ['onlyAlice', alice, 'all'],
  ['onlyAlice', bob, 'none'],
  ['oneSkill', alice, ['read']],
  ['oneSkill', bob, 'none'],
  ['deniedSkill', alice, ['read']],
  ['deniedSkill', bob, 'all'],
  ['deniedSkills', alice, 'none'],
  ['unlistedSkill', alice, 'none'],
  ['deniedSkill', { ...bob, delegate: alice }, ['read']],
  ['oneSkill', { ...alice, operator: true }, 'all'],
])('policy %s gives caller %j access to %j', (name, caller, expected) => {
  const access = new CompiledPolicy(policies[name]).access(caller, skills)
  expect(access.kind === 'some' ? [...access.skills] : access.kind).toEqual(expected)
})

test('an agent without skills is callable under a rule for the whole agent, but not under a rule for skills', () => {
  expect(new CompiledPolicy(policies.onlyAlice).access(alice, [])).toEqual({ kind: 'all' })
  expect(new CompiledPolicy(policies.oneSkill).access(alice, [])).toEqual({ kind: 'none' })
})

test.each([
  '*',
  'anonymous',
  'authenticated',
  'client:alice',
  'tag:team-a',
  'did:key:z6Mk',
  'did:web:a.example:*',
])('a rule may name the callers %s', (caller) => {
  expect(callerFault(caller)).toBeUndefined()
})

test.each([
  'alice',
  '',
  'client:',
  'client:a b',
  'client:a\u0000',
  'tag:',
  'tag:Team',
  'tag:*',
  'did:',
  'did:*',
  'did:parley:acme:*',
  'did:web:*',
  'did:web:acme.example*',
  'did:web:a:*:b',
  `client:${'x'.repeat(300)}`,
])('a rule with the caller %j is refused', (caller) => {
  expect(callerFault(caller)).toEqual(expect.any(String))
})

test.each<[string, unknown, string]>([
  [
    'an unknown field, which may be a misspelled limit',
    { rules: [{ effect: 'allow', callers: ['*'], skill: ['a'] }] },
    'rules.0',
  ],
  ['an unknown effect', { rules: [{ effect: 'permit', callers: ['*'] }] }, 'rules.0.effect'],
  ['no callers', { rules: [{ effect: 'deny', callers: [] }] }, 'rules.0.callers'],
  ['an empty list of skills', { rules: [{ effect: 'allow', callers: ['*'], skills: [] }] }, 'rules.0.skills'],
  [
    'an invalid caller in the second rule',
    {
      rules: [
        { effect: 'deny', callers: ['*'] },
        { effect: 'allow', callers: ['client:a', 'bob'] },
      ],
    },
    'rules.1.callers.1',
  ],
  ['101 rules', { rules: Array.from({ length: 101 }, () => ({ effect: 'deny', callers: ['*'] })) }, 'rules'],
  [
    '101 callers',
    { rules: [{ effect: 'deny', callers: Array.from({ length: 101 }, () => '*') }] },
    'rules.0.callers',
  ],
  ['no object', [], ''],
])('a policy with %s is refused and the path %s is named', (_what, policy, path) => {
  const parsed = policyIn.safeParse(policy)
  expect(parsed.error?.issues.map((issue) => issue.path.join('.'))).toContain(path)
})

test('a policy without a default denies', () => {
  expect(policyOf(policyIn.parse({ rules: [] }))).toEqual({ rules: [], default: 'deny' })
})
