import { timestampOf } from '@parley/wire/model/timestamp'
import { expect, test } from 'vitest'
import type { AgentEntry } from '../registry/entry.ts'
import { AwaitedAgents } from './awaited-agents.ts'

const minutesAgo = (minutes: number) => timestampOf((Date.now() - minutes * 60_000) * 1000)
const sky = {
  slug: 'sky',
  origin: 'supervised',
  host: 'here',
  status: 'unreachable',
  since: minutesAgo(60),
} satisfies Partial<AgentEntry>

test('a supervised agent is awaited as long as it is unavailable', () => {
  const awaited = new AwaitedAgents({ host: 'here', runs: new Set(['sky']) })
  expect(awaited.isAwaited(sky)).toBe(true)
  const { host: _, ...old } = sky
  expect(awaited.isAwaited(old)).toBe(true)
})

test('an agent that has no folder or is not started by the supervisor is not awaited', () => {
  const awaited = new AwaitedAgents({ host: 'here', runs: new Set(['sky']) })
  expect(awaited.isAwaited({ ...sky, slug: 'board' })).toBe(false)
  expect(awaited.isAwaited({ ...sky, slug: 'board', status: 'ready' })).toBe(true)
  awaited.leaveOut('sky')
  expect(awaited.isAwaited({ ...sky, status: 'starting' })).toBe(false)
})

test('an agent on another machine is awaited for only 15 minutes', () => {
  for (const runs of [undefined, new Set(['sea'])]) {
    const awaited = new AwaitedAgents({ host: 'there', runs })
    expect(awaited.isAwaited(sky)).toBe(false)
    expect(awaited.isAwaited({ ...sky, since: minutesAgo(14) })).toBe(true)
    expect(awaited.isAwaited({ ...sky, status: 'starting' })).toBe(true)
  }
})
