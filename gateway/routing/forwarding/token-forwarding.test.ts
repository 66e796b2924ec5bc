import { expect, test } from 'vitest'
import type { AgentEntry } from '../../registry/entry.ts'
import { mayForwardToken, resourceOf, tokenDecision, tokenInfoOf, tokenRefused } from './token-forwarding.ts'

const did = 'did:parley:ada:agent:0d9f1c5a-0000-4000-8000-000000000000'
const bearer = { securitySchemes: { bearer: { type: 'http', scheme: 'bearer' } } }
const external = {
  slug: 'sky',
  did,
  url: 'https://sky.example',
  card: bearer,
  origin: 'registered',
  verified: true,
  admitted: true,
  admittedBy: 'operator',
} as unknown as AgentEntry
const supervised = { ...external, origin: 'supervised', admittedBy: 'supervisor' } as AgentEntry

const token = (audience: string[], scope = 'agent:read agent:write') =>
  tokenInfoOf(
    { id: 'alice', subject: 'alice', scopes: new Set(scope.split(' ')), audience },
    'https://gateway.example',
  )

test.each([
  ['no audience', [], 'wrong_audience'],
  ['the audience of another agent', ['https://other.example'], 'wrong_audience'],
  ['the gateway as its audience', ['https://gateway.example'], 'wrong_audience'],
  ['a longer address as its audience', ['https://sky.example.evil.example'], 'wrong_audience'],
  ['the agent’s DID as its audience', [did], 'forward'],
  ['the agent’s address as its audience', ['https://sky.example/'], 'forward'],
  ['the agent’s address at the gateway as its audience', ['https://gateway.example/agents/sky'], 'forward'],
  ['the agent among its audiences', ['https://gateway.example', did], 'forward'],
])('for a token with %s, the decision about an external agent is %s', (_what, audience, decision) => {
  expect(tokenDecision(external, token(audience as string[]))).toBe(decision)
})

test('a DID does not identify an agent until the agent has proven its key', () => {
  const unproven = { ...external, verified: false }
  expect(mayForwardToken(unproven, token([did]))).toBe(false)
  expect(resourceOf(unproven)).toBe('https://sky.example')
})

test('a token with agent:admin is forwarded to no external agent, and only to supervised agents that it names', () => {
  const operator = (audience: string[]) => token(audience, 'agent:read agent:admin')
  expect(tokenDecision(external, operator([did]))).toBe('operator_token')
  expect(tokenDecision(supervised, operator([]))).toBe('operator_token')
  expect(tokenDecision(supervised, operator([did]))).toBe('forward')
})

test('supervised agents and verified agents that an operator declared as own receive tokens without an audience', () => {
  const own = { ...external, own: true }
  expect(mayForwardToken(supervised, token([]))).toBe(true)
  expect(mayForwardToken(own, token([]))).toBe(true)
  expect(mayForwardToken({ ...own, verified: false }, token([]))).toBe(false)
  expect(mayForwardToken({ ...own, admittedBy: 'open' }, token([]))).toBe(false)
})

test.each<[string, object]>([
  ['no security scheme', {}],
  ['an empty list of schemes', { securitySchemes: {} }],
  ['an API key alone', { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'authorization' } } }],
  ['HTTP Basic alone', { securitySchemes: { basic: { type: 'http', scheme: 'basic' } } }],
])('an external agent whose card declares %s receives no Authorization header', (_what, card) => {
  expect(tokenDecision({ ...external, card: card as AgentEntry['card'] }, token([did]))).toBe('omit')
})

test.each<[string, object]>([
  ['OAuth 2.0', { oauth: { type: 'oauth2' } }],
  ['OpenID Connect', { oidc: { type: 'openIdConnect' } }],
  ['OAuth 2.0 as A2A 1.0 spells it', { oauth: { oauth2SecurityScheme: {} } }],
  ['a bearer token as A2A 1.0 spells it', { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } } }],
])('a card that declares %s accepts bearer tokens', (_what, securitySchemes) => {
  const card = { securitySchemes } as unknown as AgentEntry['card']
  expect(mayForwardToken({ ...external, card }, token([did]))).toBe(true)
})

test('a token that was not introspected is not forwarded', () => {
  for (const entry of [external, supervised]) expect(mayForwardToken(entry, undefined)).toBe(false)
})

test('the error explains how to get a token for the agent', () => {
  const { status, code, message, data } = tokenRefused(external, 'wrong_audience')
  expect([status, code]).toEqual([403, -32013])
  expect(message).toContain(`npx parley token --resource ${did}`)
  expect(message).toContain(`resource=${did}`)
  expect(data).toEqual({ reason: 'wrong_audience', agent: 'sky', resource: did })
})
