import { memoryDocuments } from '@parley/kit/database/memory/documents'
import { expect, test, vi } from 'vitest'
import { type LinkStore, linksIn, markedForMs } from './links.ts'

/** Two relays that share a database. */
function relays(): [LinkStore, LinkStore] {
  const documents = memoryDocuments()
  return [linksIn(documents, 'one'), linksIn(documents, 'two')]
}

/** Marks the agent at a time after which the relay counts as gone. */
async function markEarlier(links: LinkStore, agent: string): Promise<void> {
  const clock = vi.spyOn(Date, 'now').mockReturnValue(Date.now() - markedForMs - 1000)
  await links.markOpen(agent)
  clock.mockRestore()
}

test('a relay that closes an idle app leaves the mark of a running relay', async () => {
  const [one, two] = relays()
  for (const links of [one, two]) await links.markOpen('greeter')
  await two.unmarkOpen('greeter')
  expect(await one.openAgents()).toEqual(['greeter'])
  await one.unmarkOpen('greeter')
  expect(await two.openAgents()).toEqual([])
})

test('the marks of a relay that no longer runs are reported, and removed with the next app that closes', async () => {
  const [one, two] = relays()
  for (const agent of ['greeter', 'painter']) await markEarlier(one, agent)
  await two.markOpen('painter')
  expect((await two.openAgents()).sort()).toEqual(['greeter', 'painter'])
  expect((await two.abandonedAgents()).sort()).toEqual(['greeter', 'painter'])
  await two.unmarkOpen('painter')
  expect(await two.openAgents()).toEqual(['greeter'])
})

test('an app whose mark is repeated does not count as abandoned', async () => {
  const [one, two] = relays()
  await markEarlier(one, 'greeter')
  await one.markOpen('greeter')
  expect(await two.abandonedAgents()).toEqual([])
})
