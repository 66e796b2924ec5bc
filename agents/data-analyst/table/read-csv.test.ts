import { expect, test } from 'vitest'
import { TableFault } from '../bounds.ts'
import { splitText } from './csv-in-text.ts'
import { decode } from './decode.ts'
import { readCsv } from './read-csv.ts'

test.each([
  ['comma', 'a,b\n1,2', ','],
  ['semicolon with decimal comma', 'a;b\n1,5;2,5\n3,5;4,5', ';'],
  ['tab', 'a\tb\n1\t2', '\t'],
  ['pipe', 'a|b\n1|2', '|'],
  ['quoted delimiter', 'a;b\n"x;y,z";2', ';'],
  ['byte order mark and CRLF', '\ufeffa,b\r\n1,2\r\n', ','],
])('detects the delimiter: %s', (_name, csv, delimiter) => {
  expect(readCsv(csv)).toMatchObject({ delimiter, names: ['a', 'b'] })
})

test('reads quotes, line breaks in fields and duplicate names', () => {
  expect(readCsv('a,a,\n"x ""y""\nz",2,3')).toMatchObject({
    names: ['a', 'a (2)', 'column 3'],
    rows: [['x "y"\nz', '2', '3']],
  })
})

test('keeps the first line of a table without a header and adds a note', () => {
  const table = readCsv('2024-01-01,5\n2024-01-02,6')
  expect(table).toMatchObject({ names: ['column 1', 'column 2'], rows: { length: 2 } })
  expect(table.notes[0]).toContain('no header')
})

test('pads a short row and adds a note', () => {
  const table = readCsv(`a,b\n${'1,2\n'.repeat(30)}3`)
  expect(table.rows.at(-1)).toEqual(['3', ''])
  expect(table.notes[0]).toContain('row 32 has 1 fields where the first line has 2')
})

test.each([
  ['nothing', '', 'empty'],
  ['a header alone', 'a,b', 'no rows'],
  ['an open quote', 'a,b\n"1,2\n3,4', 'never closed'],
  ['text after a quote', 'a,b\n"1"x,2', 'closing quote'],
  ['rows of many lengths', 'a,b\n1\n1,2,3\n1,2,3,4\n1,2', 'different lengths'],
  ['too many columns', `${'a,'.repeat(200)}b\n${'1,'.repeat(200)}2`, '201 columns'],
  ['too many rows', `a,b\n${'1,2\n'.repeat(200_001)}`, 'more than 200,000 rows'],
])('rejects %s and gives the reason', (_name, csv, reason) => {
  expect(() => readCsv(csv)).toThrow(TableFault)
  expect(() => readCsv(csv)).toThrow(reason)
})

test.each([
  ['UTF-8', Buffer.from('größe'), 'größe'],
  ['Windows-1252', Buffer.from([0x67, 0x72, 0xf6, 0xdf, 0x65]), 'größe'],
  ['UTF-16', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('größe', 'utf16le')]), 'größe'],
])('decodes %s', (_name, bytes, text) => {
  expect(decode(bytes)).toBe(text)
})

test.each([
  ['a spreadsheet', Buffer.from('PK\u0003\u0004'), 'save the sheet as CSV'],
  ['a binary file', Buffer.from([1, 2, 0, 4]), 'binary'],
  ['a huge one', Buffer.alloc(17 * 1024 * 1024, 'a'), 'larger than 16 MiB'],
])('rejects %s', (_name, bytes, reason) => {
  expect(() => decode(bytes)).toThrow(reason)
})

test.each([
  ['what stands out?\n\na,b\n1,2\n3,4', 'what stands out?', 'a,b\n1,2\n3,4'],
  ['Hello, what stands out?\na,b\n1,2', 'Hello, what stands out?', 'a,b\n1,2'],
  ['sales by month please:\n```csv\nm,s\nJan,1\n```', 'sales by month please:', 'm,s\nJan,1'],
  ['m;s\nJan;1\nFeb;2\n\nplot it', 'plot it', 'm;s\nJan;1\nFeb;2'],
  ['mean of this\nage\n12\n15\n19', 'mean of this', 'age\n12\n15\n19'],
  ['sum?\n| m | s |\n|---|--:|\n| Jan | 1 |\n| Feb | 2 |', 'sum?', ' m | s \n Jan | 1 \n Feb | 2 '],
  ['what stands out?', 'what stands out?', undefined],
  ['Hi, there.\nThanks, all.', 'Hi, there.\nThanks, all.', undefined],
])('separates the table from the surrounding text: %j', (text, question, csv) => {
  const split = splitText(text)
  expect(split.question.replace(/\s+/g, ' ')).toBe(question.replace(/\s+/g, ' '))
  expect(split.csv).toBe(csv)
})
