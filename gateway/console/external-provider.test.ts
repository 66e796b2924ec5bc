import { beforeAll, expect, test } from 'vitest'
import { agent, bearer, type FakeAgent, gateway, gatewayForAllTests, saying } from '../testing.ts'
import { addAccount, TestBrowser } from './testing.ts'

gatewayForAllTests()

const admin = 'agent:read agent:write agent:admin'
const origin = () => gateway().addresses.public
const browser = () => new TestBrowser(origin())
let poet: FakeAgent
let password: string

beforeAll(async () => {
  const token = bearer('ops', admin).slice('Bearer '.length)
  password = await addAccount(origin(), token, { name: 'olga', role: 'operator' })
  poet = await agent('poet', 'Writes poems')
})

test('with an external OAuth server, a person signs in with the password at the gateway', async () => {
  const olga = browser()
  expect((await olga.signIn('olga', 'WRONG')).response.status).toBe(403)
  const { url } = await olga.signIn('olga', password)
  expect(url).toBe(`${origin()}/console/`)
  expect(await olga.session()).toMatchObject({
    name: 'olga',
    client_id: expect.stringMatching(/^console:olga:/),
  })
  expect((await olga.api('/operator/accounts')).status).toBe(200)
})

test('an agent receives a statement about the client of the account, without agent:admin', async () => {
  const olga = browser()
  await olga.signIn('olga', password)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/send', params: saying('a poem') })
  const headers = { 'content-type': 'application/json' }
  const sent = await olga.api(`/agents/${poet.slug}/`, { method: 'POST', headers, body })
  expect(sent.status).toBe(200)
  const [, claims = ''] = poet.sent().at(-1)?.headers.authorization?.split('.') ?? []
  expect(JSON.parse(Buffer.from(claims, 'base64url').toString())).toMatchObject({
    client_id: expect.stringMatching(/^console:olga:/),
    scope: expect.not.stringContaining('agent:admin'),
  })
})

test('a form of a sign-in that was started in another browser is refused', async () => {
  const [attacker, victim] = [browser(), browser()]
  const page = await (await attacker.fetch('/console/sign-in')).text()
  const token = /name="token" value="([^"]*)"/.exec(page)?.[1] ?? ''
  await victim.fetch('/console/sign-in')
  const form = new URLSearchParams({ account: 'olga', password, token })
  const answer = await victim.fetch('/console/sign-in', { method: 'POST', body: form })
  expect(answer.status).toBe(400)
  expect((await victim.fetch('/console/session')).status).toBe(401)
})

test('attempts at the gateway are limited', async () => {
  const statuses: number[] = []
  for (let attempt = 0; attempt < 7; attempt += 1)
    statuses.push((await browser().signIn('no-one', 'WRONG')).response.status)
  expect(statuses.slice(5)).toEqual([429, 429])
})
