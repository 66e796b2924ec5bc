import { afterEach, beforeAll, expect, test } from 'vitest'
import { agent, bearer, call, gateway, gatewayForAllTests, identityProvider, saying } from '../../testing.ts'
import type { AgentTaskRow } from '../tasks/clean-row.ts'
import { agentWith, row } from '../tasks/testing.ts'

gatewayForAllTests()

interface Frame {
  id: string
  event: string
  // oxlint-disable-next-line typescript/no-explicit-any -- the test checks the forms
  data: any
}

const admin = 'agent:read agent:admin'
const tasks: AgentTaskRow[] = [row('old', 1)]
let number = 2
const add = (id: string, more: Partial<AgentTaskRow> = {}) => tasks.unshift(row(id, number++, more))

const open: AbortController[] = []
afterEach(() => {
  for (const one of open.splice(0)) one.abort()
})

beforeAll(async () => {
  await agentWith('sky', tasks)
})

/** Opens a stream and returns a function that waits for the next frame that matches. */
async function stream(query = '', client = 'root', scope = admin, headers: Record<string, string> = {}) {
  const controller = new AbortController()
  open.push(controller)
  const { body } = await fetch(`${gateway().addresses.public}/operator/events${query}`, {
    headers: { authorization: bearer(client, scope), ...headers },
    signal: controller.signal,
  })
  const reader = body!.pipeThrough(new TextDecoderStream()).getReader()
  const frames: Frame[] = []
  let text = ''
  let isOpen = true
  const readMore = async () => {
    const { value = '', done } = await reader.read()
    isOpen = !done
    text += value
    const parts = text.split('\n\n')
    text = parts.pop() ?? ''
    for (const part of parts) {
      const [, id = '', event = '', data = 'null'] = /^id: (.*)\nevent: (.*)\ndata: (.*)$/s.exec(part) ?? []
      if (event !== '') frames.push({ id, event, data: JSON.parse(data) })
    }
  }
  const next = async (matches: (one: Frame) => boolean): Promise<Frame> => {
    for (;;) {
      const at = frames.findIndex(matches)
      const [found] = at === -1 ? [] : frames.splice(0, at + 1).slice(-1)
      if (found !== undefined) return found
      if (!isOpen) throw new Error('the stream has ended')
      await readMore()
    }
  }
  return { next, frames }
}

const ofTask = (id: string) => (one: Frame) => one.event === 'task' && one.data.task_id === id

test('an operator receives the changes of all tasks, decisions and agents, a caller only its own tasks', async () => {
  const [all, own] = [await stream(), await stream('', 'alice', 'agent:read')]
  await all.next(({ event }) => event === 'load')
  add('of-bob', { owner: 'bob' })
  add('of-alice')
  expect((await all.next(ofTask('of-bob'))).data).toMatchObject({
    agent: 'sky',
    owner: 'bob',
    text: 'text of of-bob',
  })
  await all.next(ofTask('of-alice'))
  await own.next(ofTask('of-alice'))
  expect(own.frames).toEqual([])
  const headers = { authorization: bearer('alice', 'agent:read') }
  expect((await fetch(`${gateway().addresses.public}/operator/audit`, { headers })).status).toBe(403)
  expect((await all.next(({ event }) => event === 'audit')).data).toMatchObject({ who: 'alice' })
  await call('message/send', saying('which agent is the sky'))
  expect((await own.next(({ event }) => event === 'decision')).data).toMatchObject({ owner: 'alice' })
  await agent('newcomer', 'Another agent')
  expect((await all.next(({ event }) => event === 'agent')).data).toMatchObject({
    agent: 'newcomer',
    status: 'ready',
  })
})

test('a stream continues after Last-Event-ID, and an unknown ID is answered with reset', async () => {
  const first = await stream('?types=task')
  const cut = await stream('?types=task,load', 'alice', 'agent:read')
  add('before')
  const { id } = await first.next(ofTask('before'))
  add('missed')
  await first.next(ofTask('missed'))
  const again = await stream('?types=task', 'root', admin, { 'last-event-id': id })
  await again.next(ofTask('missed'))
  const lost = await stream('?last_event_id=0123456789ab-7')
  expect((await lost.next(() => true)).event).toBe('reset')
  expect(cut.frames.filter(({ event }) => event === 'load')).toEqual([])
})

test('more than 20 streams of a caller are refused', async () => {
  await Promise.all(Array.from({ length: 20 }, () => stream('', 'greedy', 'agent:read')))
  const headers = { authorization: bearer('greedy', 'agent:read') }
  const response = await fetch(`${gateway().addresses.public}/operator/events`, { headers })
  expect(response.status).toBe(429)
})

test('a stream ends when its token expires', async () => {
  const token = identityProvider().issue('alice', { scope: 'agent:read', exp: Date.now() / 1000 + 1 })
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(`${gateway().addresses.public}/operator/events`, { headers })
  expect(await response.text()).toContain(': the token has expired\n')
})
