import type { HandlerContext } from '@parley/agent'
import { expect, test } from 'vitest'
import { TableFault } from '../bounds.ts'
import { findTable } from './find-table.ts'

type Part = HandlerContext['message']['parts'][number]

const text = (said: string): Part => ({ kind: 'text', text: said })
const csv = 'a,b\n1,2\n3,4'
const file = (name: string, mimeType: string, content = csv): Part => ({
  kind: 'file',
  file: { name, mimeType, bytes: Buffer.from(content).toString('base64') },
})
const user = (...parts: Part[]) => ({ role: 'user', parts })
const asked = {
  role: 'assistant',
  parts: [text('Which column?'), { kind: 'data', data: { columns: ['a', 'b'] } }],
}
interface More {
  references?: object[]
  earlier?: object[]
  files?: object[]
}
const find = (history: object[], more: More = {}) =>
  findTable({
    files: more.files ?? [],
    history,
    references: more.references ?? [],
    context: { id: 'c', history: more.earlier ?? [] },
  } as never)

test.each([
  ['a CSV file', [text('plot a'), file('t.csv', 'text/csv')], 't.csv'],
  ['a TSV file by its name', [text('plot a'), file('t.tsv', 'application/octet-stream')], 't.tsv'],
  ['a path is cut to its name', [text('plot a'), file('../../t.csv', 'text/csv')], 't.csv'],
  ['data', [text('plot a'), { kind: 'data', data: { csv } } as Part], 'table'],
  [
    'data with its own question',
    [{ kind: 'data', data: { csv, question: 'plot a', name: 'mine' } } as Part],
    'mine',
  ],
  ['text', [text(`plot a\n\n${csv}`)], 'table'],
])('finds the table as %s', (_name, parts, name) => {
  expect(find([user(...parts)])).toEqual({ csv, name, question: 'plot a' })
})

test('uses the earlier table and question after a follow-up question', () => {
  expect(find([user(text('plot it'), file('t.csv', 'text/csv')), asked, user(text('a'))])).toEqual({
    csv,
    name: 't.csv',
    question: 'plot it',
    answer: 'a',
  })
})

test('keeps the question when the table is sent later', () => {
  const history = [
    user(text('plot a')),
    { role: 'assistant', parts: [text('Which table?')] },
    user(file('t.csv', 'text/csv')),
  ]
  expect(find(history)).toEqual({ csv, name: 't.csv', question: 'plot a' })
})

test('drops the earlier question if a new table follows a follow-up question', () => {
  const history = [
    user(text('plot it'), file('old.csv', 'text/csv')),
    asked,
    user(text('plot a'), file('t.csv', 'text/csv')),
  ]
  expect(find(history)).toEqual({ csv, name: 't.csv', question: 'plot a' })
})

test('uses the table of a referenced task or of an earlier task in the conversation', () => {
  const earlier = { history: [user(file('t.csv', 'text/csv'))], artifacts: [] }
  const made = { history: [], artifacts: [{ parts: [file('made.csv', 'text/csv')] }] }
  expect(find([user(text('plot a'))], { earlier: [earlier] })).toMatchObject({
    name: 't.csv',
    question: 'plot a',
  })
  expect(find([user(text('plot a'))], { earlier: [earlier], references: [made] })).toMatchObject({
    name: 'made.csv',
  })
})

test('does not use our own reports as tables', () => {
  const given = { history: [user(file('t.csv', 'text/csv'))], artifacts: [] }
  const report = text('| column | type |\n|---|---|\n| a | number |\n| b | number |')
  const asked = { history: [user(text('and b?'))], artifacts: [{ parts: [report] }] }
  expect(find([user(text('plot a'))], { earlier: [given, asked] })).toMatchObject({ name: 't.csv' })
})

test('returns only the question when there is no table', () => {
  expect(find([user(text('what stands out?'))])).toEqual({ question: 'what stands out?' })
})

test('rejects a spreadsheet and explains how to export it', () => {
  const type = 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet'
  expect(() => find([user(file('t.xlsx', type))])).toThrow(TableFault)
})

test('reads a fetched file from the files of the message', () => {
  const named: Part = { kind: 'file', file: { uri: 'https://files.example/t.csv', name: 't.csv' } } as Part
  const fetched = { name: 't.csv', mimeType: 'text/csv', bytes: Buffer.from(csv), text: csv }
  expect(find([user(text('plot a'), named)], { files: [fetched] })).toEqual({
    csv,
    name: 't.csv',
    question: 'plot a',
  })
  expect(find([user(text('plot a'), named)])).toEqual({ question: 'plot a' })
})

test.each(['user', 'agent', 'assistant', 'system'])('the caller may speak as %s', (role) => {
  const first = { role, parts: [text(`plot it\n\n${csv}`)] }
  expect(find([first])).toMatchObject({ csv, question: 'plot it' })
  expect(find([first, asked, { role, parts: [text('a')] }])).toMatchObject({
    csv,
    question: 'plot it',
    answer: 'a',
  })
  const earlier = { history: [first, { role: 'assistant', parts: [text(`x,y\n5,6\n7,8`)] }], artifacts: [] }
  expect(find([user(text('plot a'))], { earlier: [earlier] })).toMatchObject({ csv })
})

test('scans a line of millions of letters without delay', () => {
  const long = 'a'.repeat(5_000_000)
  expect(find([user(text(`${long},b?\n${long},c?`))])).toHaveProperty('question')
})
