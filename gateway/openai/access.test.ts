import { expect, test } from 'vitest'
import { embeddedOAuth, gateway, gatewayForEachTest, oauthClient } from '../testing.ts'
import { errorOf, openAi } from './testing.ts'

gatewayForEachTest({ ...embeddedOAuth, RATE_LIMIT_PER_MINUTE: '20', CORS_ORIGINS: 'http://chat.example' })

test('tokens for the API, for the gateway and long-lived keys are accepted, others are not', async () => {
  const client = await oauthClient('chat')
  const url = gateway().addresses.public
  const models = async (apiKey: string) =>
    (await openAi('', { apiKey }).models.list()).data.map(({ id }) => id)
  expect(await models(await client.token({ resource: `${url}/v1` }))).toEqual(['auto'])
  expect(await models(await client.token({ resource: url }))).toEqual(['auto'])
  const created = await fetch(`${url}/client-keys`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await client.token({ resource: url })}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ name: 'chat', scope: 'agent:read agent:write' }),
  })
  const { key } = (await created.json()) as { key: string }
  expect(key).toMatch(/^plk_/)
  expect(await models(key)).toEqual(['auto'])
  const other = await client.token({ resource: 'http://other.example' })
  expect(await errorOf(openAi('', { apiKey: other }).models.list())).toMatchObject({ status: 401 })
})

test('the rate limit applies, with Retry-After and an error of this form', async () => {
  const token = await (await oauthClient('chat')).token()
  const client = openAi('', { apiKey: token })
  const errors = await Promise.all(
    Array.from({ length: 25 }, () => client.models.list().then(() => undefined, String)),
  )
  expect(errors.filter((error) => error === undefined)).toHaveLength(20)
  const error = await errorOf(client.models.list())
  expect(error).toMatchObject({ status: 429, code: 'rate_limit_exceeded', type: 'rate_limit_error' })
  expect(Number(error.headers?.get('retry-after'))).toBeGreaterThan(0)
})

test('a page of an allowed origin may send what the SDK sends', async () => {
  const requested = 'authorization,content-type,x-stainless-retry-count,x-stainless-timeout,x-parley-context'
  const preflight = await fetch(`${gateway().addresses.public}/v1/chat/completions`, {
    method: 'OPTIONS',
    headers: {
      origin: 'http://chat.example',
      'access-control-request-method': 'POST',
      'access-control-request-headers': requested,
    },
  })
  const allowed = preflight.headers.get('access-control-allow-headers')?.toLowerCase().split(/, */) ?? []
  expect(requested.split(',').filter((name) => !allowed.includes(name))).toEqual([])
})
