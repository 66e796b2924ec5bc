import { unavailable } from '@parley/kit/database/errors'
import { expect, test, vi } from 'vitest'
import { s256, startIdentityProvider, type TestIdentityProvider, temporaryFolder } from './testing.ts'

const native = {
  application_type: 'native',
  redirect_uris: ['http://127.0.0.1/cb'],
  token_endpoint_auth_method: 'none',
  grant_types: ['authorization_code'],
}

/** Requests an authorization with the cookie of an earlier one, so that its session is also looked up. */
async function authorization(server: TestIdentityProvider) {
  const clientId = String((await server.register(native)).body['client_id'])
  const query = new URLSearchParams({
    client_id: clientId,
    response_type: 'code',
    redirect_uri: 'http://127.0.0.1:9/cb',
    scope: 'agent:read',
    state: 's',
    code_challenge: s256('v'.repeat(43)),
    code_challenge_method: 'S256',
  })
  const ask = (cookie = '') =>
    server.fetch(`/oauth2/authorize?${query.toString()}`, { headers: { cookie, accept: 'text/html' } })
  const first = await ask()
  const cookie = first.headers.getSetCookie().map((line) => line.split(';', 1)[0])
  return () => ask(cookie.join('; '))
}

const reads = ['find', 'findByUid', 'findByUserCode'] as const
const writes = ['upsert', 'insert', 'consume'] as const

test.each<[string, () => Promise<never>]>([
  ['refuses', () => Promise.reject(unavailable('The storage does not answer'))],
  ['never responds', () => new Promise(() => {})],
])(
  '/oauth2/authorize waits only once for a store that %s and then responds with 503',
  async (_how, away) => {
    await using folder = await temporaryFolder()
    await using server = await startIdentityProvider({ dir: folder.dir })
    const ask = await authorization(server)
    const spies = [...reads, ...writes].map((name) => vi.spyOn(server.store, name).mockImplementation(away))
    const { status, headers, text } = await ask()
    expect([status, headers.get('retry-after'), headers.get('location')]).toEqual([503, '5', null])
    expect(text).toContain('temporarily unavailable')
    expect(spies.reduce((asked, { mock }) => asked + mock.calls.length, 0)).toBe(1)
    for (const spy of spies) spy.mockRestore()
    expect((await ask()).status).toBe(303)
  },
  60_000,
)

test('the store is not called again after a failure during a request', async () => {
  await using folder = await temporaryFolder()
  await using server = await startIdentityProvider({ dir: folder.dir })
  const ask = await authorization(server)
  const find = vi.spyOn(server.store, 'find')
  await ask()
  const asked = find.mock.calls.length
  expect(asked).toBeGreaterThan(0)
  find.mockClear()
  const upsert = vi.spyOn(server.store, 'upsert').mockRejectedValue(unavailable('The storage is full'))
  expect((await ask()).status).toBe(503)
  expect([find.mock.calls.length, upsert.mock.calls.length]).toEqual([asked, 1])
})
