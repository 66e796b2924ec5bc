import { stripVTControlCharacters } from 'node:util'
import { expect, test } from 'vitest'
import { terminalLine } from './terminal-log.ts'

const line = (fields: object) =>
  stripVTControlCharacters(
    terminalLine(
      JSON.stringify({ level: 30, time: '2026-01-02T03:04:05.678Z', name: 'gateway', pid: 7, ...fields }),
    ),
  )

test('a log line is printed as one line on a terminal, with its fields but without process ids', () => {
  expect(line({ url: 'http://127.0.0.1:7400', agents: 5, msg: 'gateway is ready' })).toMatch(
    /^\[\d\d:\d\d:\d\d\] INFO \(gateway\): gateway is ready \{"url":"http:\/\/127.0.0.1:7400","agents":5\}\n$/,
  )
})

test('an audit line is printed as a sentence', () => {
  const decision = { audit: true, who: 'supervisor', action: 'registry.register', target: 'calculator' }
  expect(line({ ...decision, allowed: true, reason: 'did:parley:a', msg: 'decision' })).toMatch(
    /\(gateway\): supervisor: registry.register calculator allowed \(did:parley:a\)\n$/,
  )
  expect(line({ ...decision, allowed: false, msg: 'decision' })).toContain(
    'registry.register calculator refused\n',
  )
})

test('the stack of an error keeps its line breaks', () => {
  const err = { type: 'TypeError', message: 'oops', stack: 'TypeError: oops\n    at here' }
  expect(line({ level: 50, err, msg: 'failed' })).toContain('at here')
})

test('text that is not a log line is passed through without control characters', () => {
  expect(terminalLine('plain \u001b[2Jtext')).toBe('plain [2Jtext\n')
})
