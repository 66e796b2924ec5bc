import { expect, test } from 'vitest'
import type { AgentEntry } from '../../registry/entry.ts'
import { ReadBudget } from '../read-budget.ts'
import type { CallerView } from '../view.ts'
import { agentsToRead } from './agents-to-read.ts'

const entry = (number: number, more: Partial<AgentEntry> = {}) =>
  ({ id: `id-${number}`, slug: `agent-${number}`, load: {}, ...more }) as AgentEntry

function sources(entries: AgentEntry[], used: string[] = []) {
  const find = (slug: string) => entries.find((one) => one.slug === slug)
  return {
    reader: { readable: () => entries, find },
    registry: { bySlug: find },
    store: { agentsOf: async () => used, find: async () => undefined },
    budget: new ReadBudget(),
  }
}

test('of 100,000 agents, 500 are read, those of the owner and those with recent use first, and one entry counts the others', async () => {
  const entries = Array.from({ length: 100_000 }, (_, number) => entry(number))
  entries[70_000] = entry(70_000, { load: { activeTasks: 1 } })
  const { agents, unread } = await agentsToRead(sources(entries, ['id-80000']), { owner: 'alice' })
  expect(agents.slice(0, 3).map(({ slug }) => slug)).toEqual(['agent-80000', 'agent-70000', 'agent-0'])
  expect(agents).toHaveLength(500)
  expect(unread).toEqual([{ agent: '*', reason: expect.stringContaining('99500 more agents') }])
})

test('an agent behind the relay is read only if it has been used or is named', async () => {
  const relay = {} as NonNullable<AgentEntry['relay']>
  const entries = [entry(1, { relay }), entry(2, { relay, load: { completed: 1 } })]
  const slugs = async (query: { agent?: string }) =>
    (await agentsToRead(sources(entries), query)).agents.map(({ slug }) => slug)
  expect(await slugs({})).toEqual(['agent-2'])
  expect(await slugs({ agent: 'agent-1' })).toEqual(['agent-1'])
})

const viewOf = (caller: string, owner?: string) =>
  ({ caller, texts: true, ...(owner !== undefined && { owner }) }) as CallerView

test('for a caller, all agents that it has used are read, and up to 50 others', async () => {
  const entries = Array.from({ length: 500 }, (_, number) => entry(number, { load: { completed: 1 } }))
  const read = (used: string[]) => agentsToRead(sources(entries, used), { view: viewOf('alice', 'alice') })
  const { agents, unread } = await read(['id-70'])
  expect(agents).toHaveLength(50)
  expect(agents[0]?.slug).toBe('agent-70')
  expect(unread).toEqual([{ agent: '*', reason: expect.stringContaining('450 more agents') }])
  const used = entries.slice(0, 80).map(({ id }) => id)
  expect((await read(used)).agents.map(({ id }) => id)).toEqual(used)
})

test('the agents that one caller reads per minute are limited, and those of an operator less so', async () => {
  const entries = Array.from({ length: 500 }, (_, number) => entry(number))
  const all = sources(
    entries,
    entries.map(({ id }) => id),
  )
  const read = (view: CallerView) => agentsToRead(all, { view })
  for (let count = 0; count < 10; count += 1) await read(viewOf('alice', 'alice'))
  await expect(read(viewOf('alice', 'alice'))).rejects.toMatchObject({
    status: 429,
    headers: { 'retry-after': expect.stringMatching(/^\d+$/) },
    data: { reason: 'agents_read' },
  })
  await read(viewOf('bob', 'bob'))
  for (let count = 0; count < 200; count += 1) await read(viewOf('root'))
  await expect(read(viewOf('root'))).rejects.toMatchObject({ status: 429 })
})
