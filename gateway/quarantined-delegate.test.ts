import { HttpIntrospector } from '@parley/kit/auth/introspection'
import { LeasedIntrospector } from '@parley/kit/auth/leased-introspection'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import {
  agent,
  didClient,
  embeddedOAuth,
  gateway,
  gatewayForEachTest,
  type OAuthClient,
  oauthClient,
  operatorClient,
} from './testing.ts'

gatewayForEachTest(embeddedOAuth)

/** The client of an agent that acts for its callers. */
let planner: OAuthClient
/** Introspects as another agent, which caches responses under leases. */
let callee: LeasedIntrospector
let delegated: string
let requests: () => number

beforeEach(async () => {
  planner = await didClient('planner')
  await agent('planner', 'Plans', { owner: planner.id, did: planner.id })
  const client = await didClient('callee')
  await agent('callee', 'Is called', { owner: client.id, did: client.id })
  const url = `${gateway().addresses.public}/oauth2/introspect`
  const http = new HttpIntrospector({ url, clientId: client.id, clientSecret: client.secret })
  const sent = vi.spyOn(http, 'request')
  requests = () => sent.mock.calls.length
  callee = new LeasedIntrospector({ http })
  onTestFinished(() => callee[Symbol.asyncDispose]())
  const alice = await oauthClient('alice')
  delegated = await planner.exchange({ subject_token: await alice.token(), resource: client.id })
})

const isActive = async () => (await callee.introspect(delegated)).active
/** Introspects the token until the response is cached. */
async function cached(): Promise<void> {
  await expect
    .poll(async () => {
      const before = requests()
      return [await isActive(), requests() - before]
    })
    .toEqual([true, 0])
}
async function operate(method: string, route: string): Promise<number> {
  const operator = await (await operatorClient()).token({ scope: 'agent:admin' })
  const response = await fetch(`${gateway().addresses.public}/registry/agents/planner${route}`, {
    method,
    headers: { authorization: `Bearer ${operator}` },
  })
  return response.status
}

test('after an operator has quarantined an agent, its tokens for callers are not active at any agent', async () => {
  await cached()
  expect(await operate('POST', '/quarantine')).toBe(200)
  expect(await isActive()).toBe(false)
  expect(await operate('POST', '/release')).toBe(200)
  expect(await isActive()).toBe(true)
})

test('after an agent was removed, its tokens for callers are not active at any agent', async () => {
  gateway().registry.setStatus(gateway().registry.bySlug('planner')?.id ?? '', 'unreachable')
  await cached()
  expect(await operate('DELETE', '')).toBe(200)
  expect(await isActive()).toBe(false)
})

test('after the caller’s token is revoked, the delegated one is not active at any agent', async () => {
  const alice = await oauthClient('bob')
  const token = await alice.token()
  const resource = gateway().registry.bySlug('callee')?.did ?? ''
  delegated = await planner.exchange({ subject_token: token, resource })
  await cached()
  await alice.revoke(token)
  expect(await isActive()).toBe(false)
})

test('after the acting agent revokes its token, the token is not active at any agent', async () => {
  await cached()
  await planner.revoke(delegated)
  expect(await isActive()).toBe(false)
})
