import { ParleyError } from '@parley/wire/errors'
import { expect, test } from 'vitest'
import { makeLog } from './log.ts'
import { logFailure } from './log-failure.ts'

function logged(error: ParleyError): Record<string, unknown> {
  const lines: string[] = []
  const destination = { write: (line: string) => void lines.push(line) }
  logFailure(makeLog({ level: 'info', name: 'test', destination }), error, { method: 'message/send' })
  expect(lines).toHaveLength(1)
  return JSON.parse(lines[0] as string) as Record<string, unknown>
}

test('a failure is logged as an error with its cause', () => {
  const cause = new Error('the disk is full')
  const line = logged(new ParleyError('Unavailable', { message: 'The storage does not answer', cause }))
  expect(line).toMatchObject({
    level: 50,
    method: 'message/send',
    msg: 'The storage does not answer',
    err: { message: 'the disk is full', stack: expect.any(String) },
  })
})

test('a request rejected during shutdown is logged at level info without a stack', () => {
  const line = logged(new ParleyError('Unavailable', { message: 'It stops', data: { reason: 'draining' } }))
  expect(line).toMatchObject({ level: 30, method: 'message/send', reason: 'draining', msg: 'It stops' })
  expect(line).not.toHaveProperty('err')
})

test('an agent failure is logged as one warning with the code of its cause but without a stack', () => {
  const cause = Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
  const data = { reason: 'agent_down', agent: 'sky' }
  const line = logged(new ParleyError('Unavailable', { message: 'Agent sky does not answer', data, cause }))
  expect(line).toMatchObject({ level: 40, agent: 'sky', reason: 'agent_down', code: 'ECONNREFUSED' })
  expect(JSON.stringify(line)).not.toContain('stack')
})
