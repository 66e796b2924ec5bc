import { expect, test } from 'vitest'
import { compare } from './judge.ts'
import type { Acknowledged } from './load.ts'
import type { Note } from './notes.ts'

const acknowledged = (messageId: string, taskId: string): Acknowledged => {
  return { messageId, taskId, agent: 'packer-1', negotiationId: 'n', sentAt: 0, isForOne: false }
}
const begun = (taskId: string): Note => ({ what: 'begun', taskId })
const done = (taskId: string): Note => ({ what: 'done', taskId })
const none = { lost: [], double: [], refusedAndDone: [], undone: [], restarted: 0 }

interface Seen {
  states?: Record<string, string>
  listed?: Record<string, string[]>
  notes?: Record<string, Note[]>
}

const one = { states: { t: 'completed' }, listed: { m: ['t'] }, notes: { m: [begun('t'), done('t')] } }

test.each<[string, Seen, object]>([
  ['one task, done once: no findings', one, {}],
  [
    'restarted after a kill: no findings',
    { ...one, notes: { m: [begun('t'), ...one.notes.m] } },
    { restarted: 1 },
  ],
  ['a task that is missing or does not end', { ...one, states: {} }, { lost: ['t'] }],
  ['work that was done twice', { ...one, notes: { m: [...one.notes.m, done('t')] } }, { double: ['m'] }],
  ['a message at two agents', { ...one, notes: { m: [...one.notes.m, begun('u')] } }, { double: ['m'] }],
  ['a second task that did not begin', { ...one, listed: { m: ['t', 'u'] } }, { double: ['m'] }],
  ['a completed task without its work', { ...one, notes: { m: [begun('t')] } }, { undone: ['t'] }],
  ['a failed task without its work: no findings', { ...one, states: { t: 'failed' }, notes: {} }, {}],
  [
    'a refused message that was done',
    { ...one, notes: { ...one.notes, r: [begun('v'), done('v')] } },
    { refusedAndDone: ['r'] },
  ],
])('%s', (_what, { states = {}, listed = {}, notes = {} }, wrong) => {
  const ledger = { acknowledged: [acknowledged('m', 't')], refused: new Map([['agent_down', ['r']]]) }
  const found = compare(
    ledger,
    new Map(Object.entries(states)),
    new Map(Object.entries(listed)),
    new Map(Object.entries(notes)),
  )
  expect(found).toEqual({ ...none, ...wrong })
})
