import { expect, test } from 'vitest'
import { Authenticator } from './authenticate.ts'
import { delegatedOwner, ownsFor } from './caller.ts'
import type { Introspection } from './introspection.ts'

const gateway = 'https://gateway.example'
const [first, second] = ['did:parley:ann:agent:one', 'did:parley:ann:agent:two']

function callerOf(act: Introspection['act']) {
  const answer = { active: true, client_id: 'alice', scope: 'agent:write', ...(act && { act }) }
  const authenticator = new Authenticator({ introspect: async () => answer }, () => [])
  return authenticator.authenticate({
    headers: { authorization: 'Bearer token' },
    method: 'POST',
    url: '/',
  })
}

test('a token exchanged by the gateway keeps its client as the owner', async () => {
  const caller = await callerOf({ sub: gateway })
  expect(caller).toMatchObject({ id: 'alice', subject: 'alice', actors: [gateway] })
  expect(caller.delegate).toBeUndefined()
})

test('the agent that acts last is the delegate and has its own owner id', async () => {
  const act = { sub: gateway, act: { sub: second, act: { sub: gateway, act: { sub: first } } } }
  const caller = await callerOf(act)
  expect(caller).toMatchObject({ subject: 'alice', delegate: second, did: second })
  expect(caller.id).toBe(delegatedOwner('alice', second))
  expect(caller.actors).toEqual([gateway, second, gateway, first])
})

test('a client owns what its delegates created, and a delegate owns only its own objects', async () => {
  const alice = await callerOf(undefined)
  const delegate = await callerOf({ sub: first })
  expect(ownsFor(alice, delegate.id)).toBe(true)
  expect(ownsFor(alice, 'alice')).toBe(true)
  expect(ownsFor(alice, 'alicea')).toBe(false)
  expect(ownsFor(delegate, 'alice')).toBe(false)
  expect(ownsFor(delegate, delegatedOwner('alice', second))).toBe(false)
  expect(ownsFor(delegate, delegate.id)).toBe(true)
})
