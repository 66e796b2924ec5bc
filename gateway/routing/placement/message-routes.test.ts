import { expect, test } from 'vitest'
import type { AgentEntry } from '../../registry/entry.ts'
import type { Route } from '../store/routing-store.ts'
import { canBeRestored } from './message-routes.ts'

const route: Route = { owner: 'alice', kind: 'task', id: 't1', agent: 'a', at: 1 }
const supervised = { origin: 'supervised' } as AgentEntry

test.each<[string, boolean, AgentEntry, Route]>([
  ['the task of a supervised agent', true, supervised, route],
  ['the context of a supervised agent', true, supervised, { ...route, kind: 'context' }],
  ['an idempotency key', false, supervised, { ...route, kind: 'key' }],
  ['a claimed task', false, supervised, { ...route, claim: { until: 2, verifiedUntil: 0 } }],
  ['the task of an external agent', false, { origin: 'joined' } as unknown as AgentEntry, route],
  ['the task of a relayed agent', false, { ...supervised, relay: {} } as unknown as AgentEntry, route],
])('queries of the agents restore the route of %s: %s', (_what, restored, entry, given) => {
  expect(canBeRestored(entry, given)).toBe(restored)
})
