import { type TestAgent, testAgent } from '@parley/agent/testing'
import { raw } from '@parley/tools/testing/raw-http'
import { afterAll, beforeAll, expect, test } from 'vitest'

let agent: TestAgent
let token: string
beforeAll(async () => {
  agent = await testAgent({ handle: ({ text }) => text })
  token = agent.caller('alice').token
})
afterAll(() => agent[Symbol.asyncDispose]())

const json = { 'content-type': 'application/json' }
const post = (body: string | Uint8Array, path = '/') => raw(agent, { path, token, headers: json, body })
const list = (fields: object) => JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'tasks/list', ...fields })

/** Checks that the server still accepts requests after a hostile body. */
async function stillServes(): Promise<void> {
  expect((await post(list({}))).json).toMatchObject({ jsonrpc: '2.0', id: '1', result: expect.any(Array) })
}

const id = '"id":"7"'
const nested = (levels: number) =>
  `{"jsonrpc":"2.0",${id},"method":"tasks/list","params":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}}`

test.each<[string, string | Uint8Array, number]>([
  ['empty', '', -32700],
  ['white space', ' \n\t', -32700],
  ['not JSON', '{"jsonrpc":', -32700],
  ['JavaScript', "{jsonrpc:'2.0'}", -32700],
  ['NaN', '{"jsonrpc":"2.0","id":NaN}', -32700],
  ['two values', '{} {}', -32700],
  ['a byte order mark', `\ufeff${list({})}`, -32700],
  ['a lone continuation byte', Buffer.from([0x22, 0x80, 0x22]), -32700],
  ['an overlong slash', Buffer.from([0x22, 0xc0, 0xaf, 0x22]), -32700],
  ['a surrogate in UTF-8', Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22]), -32700],
  ['a truncated character', Buffer.concat([Buffer.from('{"a":"'), Buffer.from([0xe2, 0x82])]), -32700],
  ['UTF-16', Buffer.from(list({}), 'utf16le'), -32700],
  ['a string', '"2.0"', -32600],
  ['a number', '17', -32600],
  ['null', 'null', -32600],
  ['an empty batch', '[]', -32600],
  ['a batch', `[${list({})},${list({})}]`, -32600],
  ['a notification', '{"jsonrpc":"2.0","method":"tasks/list"}', -32600],
  ['a null id', '{"jsonrpc":"2.0","id":null,"method":"tasks/list"}', -32600],
  ['a fraction as id', '{"jsonrpc":"2.0","id":1.5,"method":"tasks/list"}', -32600],
  ['an id beyond all numbers', '{"jsonrpc":"2.0","id":1e400,"method":"tasks/list"}', -32600],
  ['an object as id', '{"jsonrpc":"2.0","id":{},"method":"tasks/list"}', -32600],
  ['true as id', '{"jsonrpc":"2.0","id":true,"method":"tasks/list"}', -32600],
])('a body that is %s receives 400 with its code and a null id', async (_name, body, code) => {
  const answer = await post(body)
  expect([answer.status, answer.json]).toEqual([
    400,
    { jsonrpc: '2.0', id: null, error: { code, message: expect.any(String), data: expect.any(Object) } },
  ])
  await stillServes()
})

test.each<[string, string, number, number]>([
  ['no jsonrpc', `{${id},"method":"tasks/list"}`, 400, -32600],
  ['jsonrpc 1.0', `{"jsonrpc":"1.0",${id},"method":"tasks/list"}`, 400, -32600],
  ['jsonrpc as number', `{"jsonrpc":2.0,${id},"method":"tasks/list"}`, 400, -32600],
  ['no method', `{"jsonrpc":"2.0",${id}}`, 400, -32600],
  ['a number as method', `{"jsonrpc":"2.0",${id},"method":1}`, 400, -32600],
  ['a list as method', `{"jsonrpc":"2.0",${id},"method":["tasks/list"]}`, 400, -32600],
  ['params as array', `{"jsonrpc":"2.0",${id},"method":"tasks/list","params":[]}`, 400, -32602],
  ['params as text', `{"jsonrpc":"2.0",${id},"method":"tasks/list","params":"{}"}`, 400, -32602],
  ['params as null', `{"jsonrpc":"2.0",${id},"method":"tasks/list","params":null}`, 400, -32602],
  ['an unknown method', `{"jsonrpc":"2.0",${id},"method":"tasks/unknown"}`, 404, -32601],
  ['a method of objects', `{"jsonrpc":"2.0",${id},"method":"toString"}`, 404, -32601],
  ['an empty method', `{"jsonrpc":"2.0",${id},"method":""}`, 404, -32601],
  ['a method in capitals', `{"jsonrpc":"2.0",${id},"method":"Tasks/List"}`, 404, -32601],
])('%s receives its error code, and the response repeats the id', async (_name, body, status, code) => {
  const answer = await post(body)
  expect([answer.status, answer.json]).toMatchObject([status, { jsonrpc: '2.0', id: '7', error: { code } }])
})

test.each<[string, unknown]>([
  ['a text', 'call-1'],
  ['an empty text', ''],
  ['a number in a text', '1'],
  ['an integer', 1],
  ['zero', 0],
  ['a negative integer', -5],
  ['the largest safe integer', Number.MAX_SAFE_INTEGER],
  ['a text of odd characters', '\u2028"\\\u0000😀'],
])('the response repeats an id that is %s with the same type and value', async (_name, given) => {
  const call = JSON.stringify({ jsonrpc: '2.0', id: given, method: 'tasks/list' })
  expect((await post(call)).json.id).toBe(given)
  const failing = JSON.stringify({ jsonrpc: '2.0', id: given, method: 'nothing' })
  expect((await post(failing)).json.id).toBe(given)
})

test('absent params are read as an empty object', async () => {
  expect((await post('{"jsonrpc":"2.0","id":1,"method":"tasks/list"}')).status).toBe(200)
})

test('the last of several duplicate keys counts', async () => {
  const body = '{"jsonrpc":"2.0","id":"a","id":"b","method":"nothing","method":"tasks/list"}'
  expect((await post(body)).json).toMatchObject({ id: 'b', result: [] })
})

test.each([
  ['100,000 levels of objects', nested(100_000)],
  ['100,000 levels of arrays', '['.repeat(100_000) + ']'.repeat(100_000)],
  ['101 levels', nested(100)],
  ['__proto__', `{"jsonrpc":"2.0",${id},"method":"tasks/list","params":{"__proto__":{"admin":true}}}`],
  ['__proto__, escaped', `{"jsonrpc":"2.0",${id},"method":"tasks/list","params":{"\\u005f_proto__":{}}}`],
  ['__proto__ in an array', `{"jsonrpc":"2.0",${id},"method":"tasks/list","params":{"a":[{"__proto__":1}]}}`],
  ['__proto__ at the top', `{"jsonrpc":"2.0",${id},"method":"tasks/list","__proto__":null}`],
  [
    'constructor.prototype',
    `{"jsonrpc":"2.0",${id},"method":"tasks/list","params":{"constructor":{"prototype":{"x":1}}}}`,
  ],
  [
    'constructor.prototype, escaped',
    `{"jsonrpc":"2.0",${id},"method":"tasks/list","params":{"c\\u006fnstructor":{"\\u0070rototype":{}}}}`,
  ],
])('%s is rejected with -32600, and the process keeps running', async (_name, body) => {
  const answer = await post(body)
  expect([answer.status, answer.json]).toMatchObject([400, { error: { code: -32600 } }])
  expect(({} as { admin?: unknown }).admin).toBeUndefined()
  await stillServes()
})

test('100 levels, a key "constructor" without "prototype" and a string "__proto__" are accepted', async () => {
  expect((await post(nested(99))).status).toBe(200)
  expect((await post(list({ params: { constructor: { name: 'x' }, a: '__proto__' } }))).status).toBe(200)
})

test('huge numbers and lone surrogates are returned as valid JSON', async () => {
  const body = `{"jsonrpc":"2.0","id":"1","method":"message/send","params":{"message":{"role":"user","kind":"message",
    "messageId":"7b7d1f30-9c53-4d2e-8a6f-0d3a6f1c2b3a","parts":[{"kind":"text","text":"a\\ud800b"},
    {"kind":"data","data":{"huge":1e999,"long":12345678901234567890,"\\udfff":-0}}]}}}`
  const answer = await post(body)
  expect(answer.status).toBe(200)
  const [text, data] = answer.json.result.history[0].parts
  expect(text.text).toBe('a\ud800b')
  expect(answer.text).toContain('\\ud800')
  expect(data.data).toEqual({ huge: null, long: 12345678901234567000, '\udfff': 0 })
  const stored = await agent.caller('alice').get(answer.json.result.id)
  expect(stored.history[0]?.parts[0]).toMatchObject({ text: 'a\ud800b' })
})

test('a body of 11 MB receives 413 with an envelope and -32600; a body of 9 MB is read', async () => {
  const large = list({ params: { note: 'x'.repeat(11 * 1024 * 1024) } })
  const answer = await post(large)
  expect([answer.status, answer.json]).toMatchObject([
    413,
    { jsonrpc: '2.0', id: null, error: { code: -32600 } },
  ])
  expect((await post(list({ params: { note: 'x'.repeat(9 * 1024 * 1024) } }))).status).toBe(200)
  await stillServes()
})
