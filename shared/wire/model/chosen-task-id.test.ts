import { expect, test } from 'vitest'
import { keyOfTask, taskIdOfKey } from './chosen-task-id.ts'

test('the id is a UUID version 8 of the first 16 bytes of the hash', () => {
  expect(taskIdOfKey('abc')).toBe('55a3b8ed-c1f3-8d61-898c-9307d3ee11cc')
})

test('a key determines one task only, and has at most 255 characters', () => {
  const [longest, tooLong] = ['a'.repeat(255), 'a'.repeat(256)]
  expect(keyOfTask('abc', taskIdOfKey('abc'))).toBe('abc')
  expect(keyOfTask(longest, taskIdOfKey(longest))).toBe(longest)
  for (const [key, taskId] of [
    ['abc', taskIdOfKey('abd')],
    ['abc', taskIdOfKey('abc').toUpperCase()],
    [undefined, taskIdOfKey('abc')],
    [['abc'], taskIdOfKey('abc')],
    [tooLong, taskIdOfKey(tooLong)],
  ] as const)
    expect(keyOfTask(key === undefined || typeof key === 'string' ? key : [...key], taskId)).toBeUndefined()
})
