import { ParleyError } from '@parley/wire/errors'
import { expect, test } from 'vitest'
import { type Log, makeLog, tellStop } from './log.ts'

function logged(tell: (log: Log) => void): Record<string, unknown>[] {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  tell(makeLog({ level: 'info', name: 'test', destination }))
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

const away = () => new ParleyError('Unavailable', { message: 'No storage', cause: new Error('refused') })

test('that something is away is told in one line without a stack, at the level of whoever tells it', () => {
  const lines = logged((log) => {
    log.error({ err: away(), task_id: 't' }, 'commit failed')
    log.child({ request_id: 'r' }).warn({ err: away() }, 'could not %s', 'leave')
  })
  const reason = 'No storage: refused'
  expect(lines).toMatchObject([
    { level: 50, task_id: 't', reason, msg: 'commit failed' },
    { level: 40, request_id: 'r', reason, msg: 'could not leave' },
  ])
  for (const line of lines) expect(line).not.toHaveProperty('err')
})

test('while a process stops that is a warning: nobody can do anything about it any more', () => {
  const lines = logged((log) => {
    const madeBefore = log.child({})
    tellStop(log)
    log.error({ err: away() }, 'one')
    madeBefore.child({}).error({ err: away() }, 'two')
    log.fatal({ err: away() }, 'three')
  })
  expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
    [40, 'one'],
    [40, 'two'],
    [60, 'three'],
  ])
})

test('a fault of ours keeps its level and its stack, also while a process stops', () => {
  const lines = logged((log) => {
    log.error({ err: new TypeError('x is not a function') }, 'before')
    tellStop(log)
    log.error({ err: new TypeError('x is not a function') }, 'after')
    log.error('text alone')
    log.error({ err: undefined }, 'nothing')
  })
  const err = { type: 'TypeError', stack: expect.stringContaining('log.test.ts') }
  expect(lines).toMatchObject([
    { level: 50, err, msg: 'before' },
    { level: 50, err, msg: 'after' },
    { level: 50, msg: 'text alone' },
    { level: 50, msg: 'nothing' },
  ])
})
