import { setTimeout as delay } from 'node:timers/promises'
import { auditList, historyAnswer } from '@parley/wire/codecs/answers/operator/records'
import { beforeAll, expect, test } from 'vitest'
import { agent, bearer, gateway, gatewayForAllTests } from '../testing.ts'

gatewayForAllTests()

const admin = 'agent:read agent:admin'

async function request(
  path: string,
  { method = 'GET', scope = admin }: { method?: string; scope?: string } = {},
) {
  const response = await fetch(`${gateway().addresses.public}${path}`, {
    method,
    headers: { authorization: bearer('root', scope) },
  })
  return { status: response.status, json: (await response.json()) as Record<string, unknown> }
}
const audit = async (query: string) => auditList.parse((await request(`/operator/audit${query}`)).json)
const history = async (id: string) =>
  historyAnswer.parse((await request(`/operator/agents/${id}/history?limit=200`)).json).history

beforeAll(async () => {
  await agent('sky', 'Weather')
  for (let count = 0; count < 50; count += 1)
    await fetch(`${gateway().addresses.public}/operator/audit`, {
      headers: { authorization: 'Bearer wrong' },
    })
  await request('/registry/agents/sky/quarantine', { method: 'POST' })
  await request('/registry/agents/sky/release', { method: 'POST' })
  // The entries are stored in the background.
  while ((await audit('?action=registry.release')).entries.length === 0) await delay(50)
})

test('an operator reads who did what, and of a flood of refusals only as many entries as one address may have', async () => {
  expect(
    (await audit('?action=registry.*')).entries.map(({ action, who, target }) => [action, who, target]),
  ).toEqual([
    ['registry.release', 'root', 'sky'],
    ['registry.quarantine', 'root', 'sky'],
  ])
  const { entries } = await audit('?allowed=false&limit=200')
  expect(entries).toHaveLength(30)
  expect(entries[0]).toMatchObject({ who: null, address: expect.any(String), reason: 'InvalidToken' })
})

test.each([
  ['?who=root&allowed=true', 2],
  ['?who=nobody', 0],
  ['?target=sky', 2],
  ['?until=2026-01-01T00:00:00Z', 0],
  ['?since=2026-01-01T00:00:00Z&action=registry.release', 1],
  ['?action=*', 32],
])('the audit log with %s', async (query, count) => {
  expect((await audit(`${query}&limit=200`)).entries).toHaveLength(count)
})

test('pages of the audit log continue where the previous one ended', async () => {
  const first = await audit('?limit=20')
  const second = await audit(`?limit=200&cursor=${first.next_cursor}`)
  expect(first.entries).toHaveLength(20)
  expect(new Set([...first.entries, ...second.entries].map(({ id }) => id)).size).toBe(32)
  expect(second.next_cursor).toBeNull()
  expect((await request(`/operator/audit?who=x&cursor=${first.next_cursor}`)).status).toBe(400)
})

test('the history of an agent names its registration, admission and quarantine, newest first', async () => {
  const changes = await history('sky')
  expect(changes.map(({ kind, by }) => [kind, by])).toEqual([
    ['released', null],
    ['quarantined', 'root'],
    ['ready', null],
    ['admitted', 'supervisor'],
    ['registered', 'sky'],
  ])
  const page = historyAnswer.parse((await request('/operator/agents/sky/history?limit=2')).json)
  const next = await request(`/operator/agents/sky/history?limit=200&cursor=${page.next_cursor}`)
  expect(historyAnswer.parse(next.json).history).toEqual(changes.slice(2))
})

test('only operators read the audit log and the history of agents', async () => {
  for (const path of ['/operator/audit', '/operator/agents/sky/history'])
    expect((await request(path, { scope: 'agent:read agent:write' })).status).toBe(403)
  expect((await request('/operator/agents/none/history')).status).toBe(404)
})
