import { expect, test } from 'vitest'
import type { AgentEntry } from '../../registry/entry.ts'
import { absenceOf } from './availability.ts'

const now = Date.parse('2026-01-01T12:00:00Z')
const since = (minutes: number) =>
  new Date(now - minutes * 60_000).toISOString().replace('Z', '000+00:00') as AgentEntry['since']
const ready = { admitted: true, status: 'ready', since: since(1) } as const
const ejected = { since: since(0), reason: 'repeated failures' }

test.each<[string, Parameters<typeof absenceOf>[0], ReturnType<typeof absenceOf>]>([
  ['ready', ready, undefined],
  ['not admitted', { ...ready, admitted: false, status: 'starting' }, undefined],
  ['quarantined by an operator', { ...ready, quarantine: { ...ejected, by: 'operator' } }, undefined],
  ['being started', { ...ready, status: 'starting' }, { rule: 'being started', retrySeconds: 2, soon: true }],
  ['being started for over ten minutes', { ...ready, status: 'starting', since: since(11) }, undefined],
  [
    'unreachable for nine minutes',
    { ...ready, status: 'unreachable', since: since(9) },
    { rule: 'unreachable', retrySeconds: 10, soon: false },
  ],
  ['unreachable for eleven minutes', { ...ready, status: 'unreachable', since: since(11) }, undefined],
  [
    'ejected for one more second',
    { ...ready, quarantine: { ...ejected, until: now + 1000 } },
    { rule: 'quarantined', retrySeconds: 2, soon: true },
  ],
  [
    'ejected for one more minute',
    { ...ready, quarantine: { ...ejected, until: now + 60_000 } },
    { rule: 'quarantined', retrySeconds: 61, soon: false },
  ],
])('an agent that is %s', (_what, entry, absence) => {
  expect(absenceOf(entry, now)).toEqual(absence)
})
