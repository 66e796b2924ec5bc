import { makeLog } from '@parley/kit/process/log'
import { expect, test } from 'vitest'
import { startRelayServer } from './relay-server.ts'

test.each([
  ['/unknown/', { error: { code: -32042, data: { reason: 'relay' } }, id: null }],
  ['/unknown/a2a/v1', { error: { code: -32042, data: [{ reason: 'UNAVAILABLE' }] }, id: null }],
  ['/unknown/a2a/v1/message:send', { error: { code: 503, status: 'UNAVAILABLE' } }],
])('a call at %s of an unknown agent is refused in the form of the call', async (path, body) => {
  const log = makeLog({ level: 'silent', name: 'relay' })
  const at = { host: '127.0.0.1', port: 0, log }
  await using server = await startRelayServer({ use: async () => false }, at)
  const response = await fetch(server.address + path, { method: 'POST', body: '{}' })
  expect(response.status).toBe(503)
  expect(response.headers.get('retry-after')).toBe('2')
  expect(await response.json()).toMatchObject(body)
})
