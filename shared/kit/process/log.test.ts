import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { ParleyError } from '@parley/wire/errors'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { frequentLog, type Log, makeLog, markStopping } from './log.ts'

function logged(write: (log: Log) => void): Record<string, unknown>[] {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  write(makeLog({ level: 'info', name: 'test', destination }))
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>)
}

const outage = () => new ParleyError('Unavailable', { message: 'No storage', cause: new Error('refused') })

test('an outage is logged in one line without a stack, at the level of the call', () => {
  const lines = logged((log) => {
    log.error({ err: outage(), task_id: 't' }, 'commit failed')
    log.child({ request_id: 'r' }).warn({ err: outage() }, 'could not %s', 'leave')
  })
  const reason = 'No storage: refused'
  expect(lines).toMatchObject([
    { level: 50, task_id: 't', reason, msg: 'commit failed' },
    { level: 40, request_id: 'r', reason, msg: 'could not leave' },
  ])
  for (const line of lines) expect(line).not.toHaveProperty('err')
})

test('during shutdown an outage is only a warning', () => {
  const lines = logged((log) => {
    const madeBefore = log.child({})
    markStopping(log)
    log.error({ err: outage() }, 'one')
    madeBefore.child({}).error({ err: outage() }, 'two')
    log.fatal({ err: outage() }, 'three')
  })
  expect(lines.map(({ level, msg }) => [level, msg])).toEqual([
    [40, 'one'],
    [40, 'two'],
    [60, 'three'],
  ])
})

test('other errors keep their level and stack even during shutdown', () => {
  const lines = logged((log) => {
    log.error({ err: new TypeError('x is not a function') }, 'before')
    markStopping(log)
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

test('lines of a frequent logger are written to a file together', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'parley-log-'))
  const file = path.join(folder, 'log')
  const fd = openSync(file, 'a')
  const destination = pino.destination({ fd, sync: true })
  const log = makeLog({ level: 'info', name: 'test', destination })
  const frequent = frequentLog(log)
  frequent.info({ task_id: 'a' }, 'task accepted')
  frequent.info({ task_id: 'a' }, 'task ended')
  frequent.debug('not at this level')
  expect(readFileSync(file, 'utf8')).toBe('')
  while (readFileSync(file, 'utf8') === '') await wait(5)
  log.info('one')
  const texts = readFileSync(file, 'utf8').trimEnd().split('\n')
  expect(texts.map((line): unknown => JSON.parse(line))).toMatchObject([
    { task_id: 'a', msg: 'task accepted' },
    { task_id: 'a', msg: 'task ended' },
    { msg: 'one' },
  ])
  closeSync(fd)
  rmSync(folder, { recursive: true })
})
