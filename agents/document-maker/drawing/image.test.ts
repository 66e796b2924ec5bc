import { expect, test } from 'vitest'
import { png } from '../testing.ts'
import { findImage, problemOf } from './image.ts'

const jpegHead = (width: number, height: number, parts = 3): Buffer =>
  Buffer.from([
    0xff,
    0xd8,
    0xff,
    0xe0,
    0,
    4,
    0,
    0,
    0xff,
    0xc0,
    0,
    17,
    8,
    height >> 8,
    height & 255,
    width >> 8,
    width & 255,
    parts,
    0,
    0,
  ])

test.each([
  ['a PNG', png(4, 3), undefined],
  ['a PNG that claims more than it holds', png(4, 3, { height: 400 }), 'damaged'],
  ['a PNG that holds far more than it claims', png(2000, 1500, { width: 2, height: 2 }), 'damaged'],
  ['a PNG that claims to be huge', png(1, 1, { width: 100_000, height: 100_000 }), 'too large'],
  ['a PNG of no width', png(4, 3, { width: 0 }), 'damaged'],
  ['half a PNG', png(40, 30).subarray(0, 60), 'damaged'],
  ['the head of a PNG', png(4, 3).subarray(0, 12), 'damaged'],
  ['a JPEG', jpegHead(40, 30), undefined],
  ['a JPEG that claims to be huge', jpegHead(60_000, 60_000), 'too large'],
  ['a JPEG of two colours', jpegHead(40, 30, 2), 'damaged'],
  ['half a JPEG', jpegHead(40, 30).subarray(0, 8), 'damaged'],
  ['an SVG', Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'), 'neither PNG nor JPEG'],
  ['one byte', Buffer.of(0xff), 'neither PNG nor JPEG'],
  ['nothing', Buffer.alloc(0), 'neither PNG nor JPEG'],
])('checks %s before placing it', (_, bytes, problem) => {
  expect(problemOf(bytes)).toBe(problem)
})

test('resolves only data URIs and names of attached files', () => {
  const bytes = png(2, 2)
  const attachments = [{ name: 'my plan.png', bytes }]
  expect(findImage(`data:image/png;base64,${bytes.toString('base64')}`, [])).toEqual({ bytes })
  expect(findImage('./my%20plan.png', attachments)).toEqual({ bytes })
  for (const source of [
    'http://127.0.0.1/x.png',
    'file:///etc/passwd',
    '/etc/passwd',
    '../x.png',
    'data:text/html,x',
    '',
  ]) {
    expect(findImage(source, attachments)).toEqual({ problem: 'not among the files' })
  }
})
