import { deprecatedSettings } from '@parley/kit/process/settings'
import { rpc } from '@parley/tools/testing/raw-http'
import { methods as table } from '@parley/wire/codecs/parley/methods'
import { afterEach, expect, test } from 'vitest'
import { testAgent } from '../../testing.ts'

const since = '2026-11-22'
const atThatTime = `@${Date.UTC(2026, 10, 22) / 1000}`
const operation = 'listTasks'
afterEach(() => void table.set('tasks/list', { operation }))

test('an agent with a deprecated manifest name logs it and sends the Deprecation header (RFC 9745) with every answer', async () => {
  const lines: string[] = []
  await using agent = await testAgent(
    { handle: () => 'done', capabilities: { push_notifications: false } },
    { env: { LOG_LEVEL: 'warn' }, logTo: { write: (line: string) => void lines.push(line) } },
  )
  const { token } = agent.caller('alice')
  const card = await fetch(`${agent.url}/.well-known/agent.json`)
  expect(await card.json()).toMatchObject({ capabilities: { pushNotifications: false } })
  const answers = [card, await fetch(`${agent.url}/nothing`), await rpc(agent, 'tasks/list', {}, { token })]
  expect(answers.map(({ headers }) => headers.get('deprecation'))).toEqual(answers.map(() => atThatTime))
  expect(lines.join('')).toContain('"use":"capabilities.pushNotifications"')
})

test('an agent without deprecated names sends no such header', async () => {
  await using agent = await testAgent({ handle: () => 'done' })
  const { token } = agent.caller('alice')
  const answers = [
    await fetch(`${agent.url}/.well-known/agent.json`),
    await rpc(agent, 'tasks/list', {}, { token }),
  ]
  expect(answers.map(({ headers }) => headers.get('deprecation'))).toEqual([null, null])
})

test('answers and errors of a deprecated method carry the header; those of other methods do not', async () => {
  table.set('tasks/list', { operation, deprecated: { since, use: 'tasks/find' } })
  await using agent = await testAgent({ handle: () => 'done' })
  const { token } = agent.caller('alice')
  const header = async (method: string, params: object) =>
    (await rpc(agent, method, params, { token })).headers.get('deprecation')
  expect(await header('tasks/list', {})).toBe(atThatTime)
  expect(await header('tasks/list', { limit: 'many' })).toBe(atThatTime)
  expect(await header('contexts/list', {})).toBeNull()
})

test('answers to calls with a deprecated field carry the header', async () => {
  const deprecatedParams = { 'filter.state': { since, use: 'state' } } as const
  table.set('tasks/list', { operation, deprecatedParams })
  await using agent = await testAgent({ handle: () => 'done' })
  const { token } = agent.caller('alice')
  const header = async (params: object) =>
    (await rpc(agent, 'tasks/list', params, { token })).headers.get('deprecation')
  expect(await header({ filter: { state: 'working' } })).toBe(atThatTime)
  expect(await header({ filter: {} })).toBeNull()
  expect(await header({ state: 'working' })).toBeNull()
})

test('a deprecated setting takes effect', () => {
  const mark = { since, use: 'NEW_NAME' } as const
  const old = { OLD_NAME: { schema: undefined as never, example: '', meaning: 'm', deprecated: mark } }
  expect(deprecatedSettings(old, { OLD_NAME: 'x' })).toEqual([{ name: 'OLD_NAME', ...mark }])
  expect(deprecatedSettings(old, { OLD_NAME: '' })).toEqual([])
  expect(deprecatedSettings(old, {})).toEqual([])
})
