import { expect, test } from 'vitest'
import { ParleyError } from '../../errors.ts'
import { idsOf } from '../../model/ids.ts'
import { a2aV1 } from './dialect.ts'
import { message, messageJson, taskId } from './sample.cases.ts'

const ids = idsOf('client')
const read = (fields: object) =>
  a2aV1.readParams(
    'sendMessage',
    { message: { messageId: 'm', role: 'ROLE_USER', parts: [{ text: '' }], ...fields } },
    ids,
  ).message
const partsOf = (...parts: unknown[]) => read({ parts }).parts

function refusal(fields: object): unknown {
  try {
    return read(fields)
  } catch (error) {
    return error instanceof ParleyError ? { [error.error]: error.data['issues'] ?? [] } : error
  }
}

test('a message is read with every field, and its IDs become UUIDs with the names of the client', () => {
  expect(read(messageJson)).toEqual({
    ...message,
    messageId: ids('msg-1').id,
    contextId: ids('talk/1').id,
  })
})

test('snake_case and numbers of enums are read as well', () => {
  const given = { message_id: 'm', messageId: null, context_id: 'c', task_id: taskId.toUpperCase(), role: 2 }
  expect(read({ ...given, parts: [{ text: 'x', media_type: 'text/plain' }] })).toMatchObject({
    role: 'agent',
    messageName: 'm',
    contextName: 'c',
    taskId,
    parts: [{ kind: 'text', text: 'x', mediaType: 'text/plain' }],
  })
})

test('IDs may contain slashes, control characters and any other character up to the limit', () => {
  for (const id of ['a/../b', '\u0000\r\n', '<uuid>:<uuid>', '💬', '\ud800', 'x'.repeat(256)]) {
    const { messageId, messageName, contextName } = read({ messageId: id, contextId: id })
    expect(messageId).toMatch(/^[\da-f-]{36}$/)
    expect([messageName, contextName]).toEqual([id, id])
  }
  expect(refusal({ messageId: 'x'.repeat(257) })).toHaveProperty(
    ['InvalidParams', 0, 'path'],
    'message.messageId',
  )
  expect(refusal({ messageId: '' })).toHaveProperty(['InvalidParams', 0, 'message'], 'is missing')
})

test('the ID of a task that the server cannot have chosen is that of a missing task', () => {
  expect(refusal({ taskId: 'tck-unknown' })).toEqual({ TaskNotFound: [] })
  expect(refusal({ referenceTaskIds: ['tck-unknown'] })).toEqual({ TaskNotFound: [] })
})

test('the data of a part is any JSON value', () => {
  for (const data of [[1], 'text', 7, false, null]) {
    const [part] = partsOf({ data, metadata: { a: 1 } })
    expect(part).toEqual({ kind: 'data', data: { value: data }, metadata: { a: 1, data_part_compat: true } })
  }
  expect(partsOf({ data: {} })).toEqual([{ kind: 'data', data: {} }])
})

test('a null next to other content is absent', () => {
  expect(partsOf({ text: 'x', data: null, raw: null })).toEqual([{ kind: 'text', text: 'x' }])
})

test.each([
  [{ kind: 'file', file: {} }, '0', 'must have one of text, raw, url and data'],
  [{ text: 'x', raw: '' }, '0.raw', 'must not be combined with text'],
  [{ text: 'x', data: 1 }, '0.data', 'must not be combined with text'],
  [{ text: 1 }, '0.text', 'Invalid input: expected string, received number'],
  [{ raw: '=' }, '0.raw', 'must be base64'],
  [{ url: 'file:///etc/passwd' }, '0.url', 'must begin with http:// or https://'],
  [
    { url: 'https://e', mediaType: 'a', media_type: 'a' },
    '0.media_type',
    'must not be combined with mediaType',
  ],
  [{ text: 'x', metadata: [] }, '0.metadata', 'must be an object'],
  ['text', '0', 'Invalid input: expected object, received string'],
  [null, '0', 'Invalid input: expected object, received null'],
])('refuses the part %j', (part, path, text) => {
  expect(refusal({ parts: [part] })).toEqual({
    InvalidParams: [{ path: `message.parts.${path}`, message: text }],
  })
})

test.each([
  [{ role: 'user' }, 'role', 'must be one of ROLE_USER, ROLE_AGENT'],
  [{ role: 'ROLE_SYSTEM' }, 'role', 'must be one of ROLE_USER, ROLE_AGENT'],
  [{ role: 0 }, 'role', 'must be ROLE_USER or ROLE_AGENT'],
  [{ parts: [] }, 'parts', 'must hold at least one part'],
  [
    { parts: Array.from({ length: 10_000 }, () => ({ text: '' })) },
    'parts',
    'Too big: expected array to have <=1000 items',
  ],
  [{ parts: 'x' }, 'parts', 'Invalid input: expected array, received string'],
  [{ metadata: 'x' }, 'metadata', 'must be an object'],
  [{ message_id: 'm' }, 'message_id', 'must not be combined with messageId'],
])('refuses a message with %j', (fields, path, text) => {
  const issues = [{ path: `message.${path}`, message: text }]
  expect(refusal(fields)).toEqual({ InvalidParams: issues })
})
