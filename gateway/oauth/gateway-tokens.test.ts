import { expect, test } from 'vitest'
import { GatewayTokens, isGatewayToken } from './gateway-tokens.ts'

const others = { introspect: async () => ({ active: false, sub: 'others' }) }
const key = Buffer.alloc(32, 1)

test('a token of the gateway acts for its client, with the scopes of a caller', async () => {
  const tokens = new GatewayTokens(key, 'gateway', others)
  const token = tokens.issue()
  expect(isGatewayToken(token)).toBe(true)
  expect(await tokens.introspect(token)).toMatchObject({
    active: true,
    client_id: 'gateway',
    scope: 'agent:read agent:write',
  })
  expect(token).not.toContain('gateway')
})

test('a changed token, one of another key and one of an earlier client are inactive', async () => {
  const tokens = new GatewayTokens(key, 'gateway', others)
  const token = tokens.issue()
  const changed = `${token.slice(0, -2)}${token.endsWith('AA') ? 'BB' : 'AA'}`
  for (const other of [
    changed,
    'pgt_',
    'pgt_x',
    new GatewayTokens(Buffer.alloc(32, 2), 'gateway', others).issue(),
    new GatewayTokens(key, 'earlier', others).issue(),
  ])
    expect(await tokens.introspect(other)).toEqual({ active: false })
})

test('all other tokens are introspected by the OAuth server', async () => {
  expect(await new GatewayTokens(key, 'gateway', others).introspect('token')).toMatchObject({ sub: 'others' })
})
