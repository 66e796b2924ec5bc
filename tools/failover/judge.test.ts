import { expect, test } from 'vitest'
import { compare } from './judge.ts'
import type { Told } from './load.ts'
import type { Note } from './notes.ts'

const told = (messageId: string, taskId: string): Told => {
  return { messageId, taskId, agent: 'packer-1', negotiationId: 'n', sentAt: 0, isForOne: false }
}
const begun = (taskId: string): Note => ({ what: 'begun', taskId })
const done = (taskId: string): Note => ({ what: 'done', taskId })
const none = { lost: [], double: [], refusedAndDone: [], undone: [], begunAgain: 0 }

interface Seen {
  states?: Record<string, string>
  listed?: Record<string, string[]>
  notes?: Record<string, Note[]>
}

const one = { states: { t: 'completed' }, listed: { m: ['t'] }, notes: { m: [begun('t'), done('t')] } }

test.each<[string, Seen, object]>([
  ['one task whose work was done once: as promised', one, {}],
  [
    'begun again after a kill: as promised',
    { ...one, notes: { m: [begun('t'), ...one.notes.m] } },
    { begunAgain: 1 },
  ],
  ['a task that is not there, or does not end: lost', { ...one, states: {} }, { lost: ['t'] }],
  ['work that was done twice', { ...one, notes: { m: [...one.notes.m, done('t')] } }, { double: ['m'] }],
  ['a message at two agents', { ...one, notes: { m: [...one.notes.m, begun('u')] } }, { double: ['m'] }],
  ['a second task that did not begin', { ...one, listed: { m: ['t', 'u'] } }, { double: ['m'] }],
  ['completed, and the work was not done', { ...one, notes: { m: [begun('t')] } }, { undone: ['t'] }],
  ['failed, and the work was not done: as promised', { ...one, states: { t: 'failed' }, notes: {} }, {}],
  [
    'a message that was refused and is done all the same',
    { ...one, notes: { ...one.notes, r: [begun('v'), done('v')] } },
    { refusedAndDone: ['r'] },
  ],
])('%s', (_what, { states = {}, listed = {}, notes = {} }, wrong) => {
  const ledger = { told: [told('m', 't')], refused: new Map([['agent_down', ['r']]]) }
  const found = compare(
    ledger,
    new Map(Object.entries(states)),
    new Map(Object.entries(listed)),
    new Map(Object.entries(notes)),
  )
  expect(found).toEqual({ ...none, ...wrong })
})
