import { afterEach, beforeEach, expect, test } from 'vitest'
import { alice, JoiningHouse, production } from './testing.ts'

let house: JoiningHouse

beforeEach(async () => {
  house = await JoiningHouse.open()
})

afterEach(() => house[Symbol.asyncDispose]())

test('a stranger joins in production: no work and no token before an operator admitted it', async () => {
  await house.start(production)
  const agent = await house.playAgent({ identity: alice })
  const bearer = await house.registered(alice)
  const { json } = await house.join(agent.url, bearer, alice)
  expect(json).toMatchObject({ verified: true, admitted: false, slug: 'stranger' })
  expect((await house.send('GET', '/registry/agents', '')).json).toMatchObject({
    agents: [{ admitted: false }],
  })
  expect((await house.send('GET', '/agent/skills', '')).json).toEqual({ skills: [], total: 0 })
  const work = () => house.send('POST', '/agents/stranger/echo', 'a-token', {})
  expect(await work()).toMatchObject({
    status: 503,
    error: { code: -32042, data: { reason: 'not_admitted' } },
  })
  const told = house.logged.filter((line) => line.includes('not_admitted'))
  expect(told).toHaveLength(1)
  expect(told[0]).toContain('"audit":true')
  expect(agent.calls.some(({ authorization }) => authorization !== undefined)).toBe(false)
  for (const route of ['admit', 'quarantine', 'release']) {
    const refused = await house.send('POST', `/registry/agents/stranger/${route}`, bearer)
    expect([refused.status, refused.error.code]).toEqual([403, -32013])
  }
  const admin = await house.operator()
  expect((await house.send('POST', '/registry/agents/stranger/admit', admin)).json).toMatchObject({
    admitted: true,
  })
  expect(await work()).toMatchObject({ status: 200, json: { echo: true } })
  expect(agent.calls.at(-1)).toEqual({ url: '/echo', authorization: 'Bearer a-token' })
  const set = await house.send('POST', '/registry/agents/stranger/quarantine', admin, { reason: 'lies' })
  expect(set.json).toMatchObject({ quarantined: true, quarantine: { reason: 'lies' } })
  expect((await work()).error.data.reason).toBe('quarantined')
  expect(house.logged.some((line) => line.includes('"Unavailable: quarantined"'))).toBe(true)
  expect((await house.send('POST', '/registry/agents/stranger/release', admin)).json).toMatchObject({
    quarantine: null,
  })
  expect((await work()).status).toBe(200)
})

test('an agent that was admitted may ask about tokens, and not before', async () => {
  await house.start(production)
  const agent = await house.playAgent({ identity: alice })
  const { client_id, client_secret } = await house.register(alice)
  const bearer = await house.tokenFor(`${house.gateway.addresses.public}/oauth2/token`, {
    client_id,
    client_secret,
  })
  await house.join(agent.url, bearer, alice)
  const admin = await house.operator()
  const basic = Buffer.from([client_id, client_secret].map(encodeURIComponent).join(':')).toString('base64')
  const asks = async () => {
    const response = await fetch(`${house.gateway.addresses.public}/oauth2/introspect`, {
      method: 'POST',
      headers: { authorization: `Basic ${basic}` },
      body: new URLSearchParams({ token: admin }),
    })
    return ((await response.json()) as { active: boolean }).active
  }
  expect(await asks()).toBe(false)
  await house.send('POST', '/registry/agents/stranger/admit', admin)
  expect(await asks()).toBe(true)
  await house.send('POST', '/registry/agents/stranger/quarantine', admin)
  expect(await asks()).toBe(false)
})

test('an operator who registers an agent admits it', async () => {
  await house.start(production)
  const agent = await house.playAgent({})
  const admin = await house.clientToken('oauth/operator-client.json', 'agent:admin agent:write')
  expect((await house.join(agent.url, admin)).json).toMatchObject({ admitted: true, verified: false })
})
