import { expect, test } from 'vitest'
import { Audit } from './audit.ts'
import { makeLog } from './log.ts'

function auditTo(lines: string[], level = 'info'): Audit {
  return new Audit(makeLog({ level, name: 'test', destination: { write: (line) => void lines.push(line) } }))
}

test('each decision is logged in one line with the client, address, action and reason for a refusal', () => {
  const lines: string[] = []
  const audit = auditTo(lines)
  audit.record({
    who: 'alice',
    address: '203.0.113.1',
    action: 'tasks/get',
    allowed: false,
    reason: 'InvalidToken',
  })
  expect(lines).toHaveLength(1)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    level: 30,
    audit: true,
    who: 'alice',
    address: '203.0.113.1',
    action: 'tasks/get',
    allowed: false,
    reason: 'InvalidToken',
    msg: 'decision',
  })
})

test.each([
  ['line breaks', 'alice\n{"audit":true,"allowed":true}'],
  ['terminal escapes', 'a\u001b[2Jb'],
  ['reversed text', 'a\u202eb\u2028c'],
])('external values with %s are limited to one line and a maximum length', (_name, who) => {
  const lines: string[] = []
  auditTo(lines).record({ who, action: 'x'.repeat(10_000), allowed: false })
  const fields = JSON.parse(lines.join('')) as Record<string, string>
  expect(fields['who']).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
  expect(fields['action']).toHaveLength(257)
})

test('accepted work is logged only at level debug', () => {
  const lines: string[] = []
  auditTo(lines).logWork({ who: 'alice', action: 'message/send', allowed: true })
  expect(lines).toEqual([])
  auditTo(lines, 'debug').logWork({ who: 'alice', action: 'message/send', allowed: true })
  expect(JSON.parse(lines.join(''))).toMatchObject({ level: 20, audit: true, action: 'message/send' })
})
