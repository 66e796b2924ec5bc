import { expect, test } from 'vitest'
import type { AgentEntry } from '../../registry/entry.ts'
import { callerTokenOf, type GatewayNames, resourceOf, tokenDecision, tokenRefused } from './caller-token.ts'

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

const gateway: GatewayNames = ['https://gateway.example', 'did:parley:op:gateway:1']
const token = (audience?: string[], scope = 'agent:read agent:write', actors?: string[]) =>
  callerTokenOf({
    id: 'alice',
    subject: 'alice',
    scopes: new Set(scope.split(' ')),
    ...(audience && { audience }),
    ...(actors && { actors }),
    credentials: { token: 'secret', introspection: { active: true } },
  })
const decide = (entry: AgentEntry, caller?: ReturnType<typeof token>) => tokenDecision(entry, caller, gateway)

test.each([
  ['no audience', undefined, 'exchange'],
  ['an empty audience', [], 'exchange'],
  ['the gateway’s address as its audience', ['https://gateway.example/'], 'exchange'],
  ['the gateway’s DID as its audience', ['did:parley:op:gateway:1'], 'exchange'],
  ['the agent’s DID as its audience', [did], 'exchange'],
  ['the agent’s address as its audience', ['https://sky.example/'], 'exchange'],
  ['the agent’s address at the gateway as its audience', ['https://gateway.example/agents/sky'], 'exchange'],
  ['the agent among its audiences', ['https://other.example', did], 'exchange'],
  ['the audience of another agent', ['https://other.example'], 'wrong_audience'],
  ['another agent at the gateway as its audience', ['https://gateway.example/agents/sea'], 'wrong_audience'],
  ['a longer address as its audience', ['https://sky.example.evil.example'], 'wrong_audience'],
] as const)(
  'for a token with %s, the decision about each kind of agent is %3$s',
  (_what, audience, decision) => {
    for (const entry of [external, supervised])
      expect(decide(entry, token(audience && [...audience]))).toBe(decision)
  },
)

test('a DID does not identify an agent until the agent has proven its key', () => {
  const unproven = { ...external, verified: false }
  expect(decide(unproven, token([did]))).toBe('wrong_audience')
  expect(resourceOf(unproven)).toBe('https://sky.example')
})

test('a token with agent:admin is exchanged for no agent', () => {
  for (const audience of [undefined, [did], ['https://gateway.example']])
    for (const entry of [external, supervised])
      expect(decide(entry, token(audience, 'agent:read agent:admin'))).toBe('operator_token')
})

test('an exchanged token is accepted for the gateway only, so that an agent cannot send back the token that it received', () => {
  const actors = ['https://gateway.example']
  for (const audience of [undefined, [], [did], ['https://gateway.example/agents/sky']])
    expect(decide(supervised, token(audience, 'agent:write', actors))).toBe('wrong_audience')
  expect(decide(supervised, token(['https://gateway.example'], 'agent:write', actors))).toBe('exchange')
})

test.each<[string, object]>([
  ['no security scheme', {}],
  ['an empty list of schemes', { securitySchemes: {} }],
  ['an API key alone', { securitySchemes: { key: { type: 'apiKey', in: 'header', name: 'authorization' } } }],
  ['HTTP Basic alone', { securitySchemes: { basic: { type: 'http', scheme: 'basic' } } }],
])('an external agent whose card declares %s receives no Authorization header', (_what, card) => {
  for (const scope of ['agent:read', 'agent:admin'])
    expect(decide({ ...external, card: card as AgentEntry['card'] }, token([did], scope))).toBe('omit')
})

test.each<[string, object]>([
  ['OAuth 2.0', { oauth: { type: 'oauth2' } }],
  ['OpenID Connect', { oidc: { type: 'openIdConnect' } }],
  ['OAuth 2.0 as A2A 1.0 spells it', { oauth: { oauth2SecurityScheme: {} } }],
  ['a bearer token as A2A 1.0 spells it', { bearer: { httpAuthSecurityScheme: { scheme: 'Bearer' } } }],
])('a card that declares %s accepts bearer tokens', (_what, securitySchemes) => {
  const card = { securitySchemes } as unknown as AgentEntry['card']
  expect(decide({ ...external, card }, token([did]))).toBe('exchange')
})

test('a request without a token reaches the agent without one', () => {
  for (const entry of [external, supervised]) expect(decide(entry)).toBe('omit')
})

test('the error explains how to get a token for the agent', () => {
  const { status, code, message, data } = tokenRefused(external, 'wrong_audience')
  expect([status, code]).toEqual([403, -32013])
  expect(message).toContain(`npx parley token --resource ${did}`)
  expect(message).toContain(`resource=${did}`)
  expect(data).toEqual({ reason: 'wrong_audience', agent: 'sky', resource: did })
})
