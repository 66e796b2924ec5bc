import type { HandlerContext, Output } from '@parley/agent'
import { data, file } from '@parley/agent'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { gatewayForAllTests } from '../testing.ts'
import { assistant, errorOf, openAi, postRaw, startAgent, user } from './testing.ts'

gatewayForAllTests()

const png = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const dataUrl = (type: string, content: Buffer | string) =>
  `data:${type};base64,${Buffer.from(content).toString('base64')}`

let runs = 0

async function* handle(context: HandlerContext): AsyncGenerator<Output> {
  runs += 1
  const { text, history, files } = context
  const [first] = history[0]?.parts ?? []
  const command = first?.kind === 'text' ? first.text : text
  if (command === 'hello') {
    context.usage({ model: 'small', inputTokens: 3, outputTokens: 2 })
    yield 'Hel'
    yield 'lo\u001B'
  } else if (command === 'weather') {
    if (history.length === 1) yield context.ask('Which city?')
    else yield `Sun in ${text}`
  } else if (command === 'chart') {
    yield 'Here it is'
    yield { points: 3 }
    yield file('chart.png', 'image/png', png)
    yield file('points.csv', 'text/csv', Buffer.from('a,b\n1,2\n'))
  } else if (command === 'json') yield { answer: 42 }
  else if (command === 'fail') throw new Error('the database is on fire')
  else if (command === 'decline') yield context.decline('I only do weather.')
  else if (command === 'bid') {
    if (history.length === 1) yield context.bid({ amount: '0.5' })
    else yield 'Done'
  } else if (command === 'earlier') yield JSON.stringify(context.context.history.map((turn) => [turn.text]))
  else
    yield data({
      text,
      files: files.map(({ name = '', mimeType = '', text: content }) => ({ name, mimeType, content })),
    })
}

beforeEach(() => {
  runs = 0
})
beforeAll(async () => {
  const modes = { inputModes: ['*/*'], outputModes: ['text/plain', 'application/json'] }
  const skills = [{ id: 'help', name: 'Help', description: 'Helps with greetings', tags: [], ...modes }]
  const agent = await startAgent('helper', { handle, skills })
  return () => agent[Symbol.asyncDispose]()
})

const ask = (content: Parameters<typeof user>[0], more: object = {}) =>
  openAi().chat.completions.create({ model: 'helper', messages: [user(content)], ...more })

test('the models are the agents that the caller may use, and auto', async () => {
  const list = await openAi().models.list()
  expect(list.data.map(({ id }) => id)).toEqual(['auto', 'helper'])
  expect(await openAi().models.retrieve('helper')).toMatchObject({ object: 'model', owned_by: 'parley' })
  expect(await errorOf(openAi().models.retrieve('nothing'))).toMatchObject({
    status: 404,
    code: 'model_not_found',
    param: 'model',
  })
  expect(await errorOf(openAi('alice', { apiKey: 'wrong' }).models.list())).toMatchObject({
    status: 401,
    code: 'invalid_api_key',
  })
})

test('an agent answers with a completion, without control characters', async () => {
  const { data: completion, response } = await ask('hello').withResponse()
  expect(completion).toMatchObject({
    object: 'chat.completion',
    model: 'helper',
    choices: [
      { index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Hello', refusal: null } },
    ],
    usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
    parley: { state: 'completed', agent: 'helper' },
  })
  expect(completion.id).toMatch(/^chatcmpl-[\da-f]{32}$/)
  expect(response.headers.get('x-agent')).toBe('helper')
  expect(response.headers.get('x-request-id')).toBeTruthy()
})

test('auto is answered by the best agent, with its name and the decision', async () => {
  const completion = await openAi().chat.completions.create({ model: 'auto', messages: [user('hello')] })
  expect(completion).toMatchObject({
    model: 'helper',
    parley: { agent: 'helper', decision_id: expect.stringMatching(/^[\da-f]{32}$/) },
  })
})

test('a stream has the text as it is written, the end and the usage', async () => {
  const stream = await openAi().chat.completions.create({
    model: 'helper',
    messages: [user('hello')],
    stream: true,
    stream_options: { include_usage: true },
  })
  const chunks = await Array.fromAsync(stream)
  expect(chunks[0]?.choices[0]?.delta).toEqual({ role: 'assistant', content: '' })
  expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('Hello')
  expect(chunks.at(-2)?.choices[0]?.finish_reason).toBe('stop')
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: 5 } })
  expect(new Set(chunks.map(({ id }) => id)).size).toBe(1)
})

test('images of the result are in the text, and other files are links that only the caller can read', async () => {
  const completion = await ask('chart')
  const content = completion.choices[0]?.message.content ?? ''
  expect(content).toContain(`Here it is\n\n![chart.png](data:image/png;base64,`)
  const [, id = ''] = /\[points\.csv\]\(.*\/v1\/files\/([^/]+)\/content\)/.exec(content) ?? []
  const csv = await openAi().files.content(id)
  expect(await csv.text()).toBe('a,b\n1,2\n')
  expect(csv.headers.get('content-disposition')).toContain('attachment')
  expect(await errorOf(openAi('bob').files.content(id))).toMatchObject({ status: 404 })
})

test('JSON is the answer on request, and the answer of an agent that only has data', async () => {
  const json = await ask('json', { response_format: { type: 'json_object' } })
  expect(json.choices[0]?.message.content).toBe('{"answer":42}')
  expect((await ask('json')).choices[0]?.message.content).toBe('```json\n{\n  "answer": 42\n}\n```')
  expect(await errorOf(ask('hello', { response_format: { type: 'json_object' } }))).toMatchObject({
    status: 502,
    code: 'not_json',
  })
})

test('a refusal of the agent is a refusal, and a failure is an error that SDKs do not repeat', async () => {
  expect((await ask('decline')).choices[0]?.message).toMatchObject({
    content: 'I only do weather.',
    refusal: 'I only do weather.',
  })
  runs = 0
  const client = openAi('alice', { maxRetries: 2 })
  const failed = client.chat.completions.create({ model: 'helper', messages: [user('fail')] })
  expect(await errorOf(failed)).toMatchObject({
    status: 502,
    code: 'task_failed',
    message: expect.stringContaining('the database is on fire'),
  })
  expect(runs).toBe(1)
  const stream = await client.chat.completions.create({
    model: 'helper',
    messages: [user('fail')],
    stream: true,
  })
  expect(await errorOf(Array.fromAsync(stream))).toMatchObject({ code: 'task_failed' })
})

describe('files', () => {
  const received = async (part: object) => {
    const { choices } = await ask([{ type: 'text', text: 'look' }, part as never], {
      response_format: { type: 'json_object' },
    })
    return JSON.parse(choices[0]?.message.content ?? '').files[0]
  }

  test('an image and a file reach the agent with their type', async () => {
    expect(
      await received({ type: 'image_url', image_url: { url: dataUrl('image/jpeg', png) } }),
    ).toMatchObject({
      mimeType: 'image/png',
    })
    const csv = { filename: 'a.csv', file_data: dataUrl('application/octet-stream', 'a,b') }
    expect(await received({ type: 'file', file: csv })).toEqual({
      name: 'a.csv',
      mimeType: 'text/csv',
      content: 'a,b',
    })
    const pretended = { filename: 'a.png', file_data: dataUrl('image/png', '<html>') }
    expect(await received({ type: 'file', file: pretended })).toMatchObject({
      mimeType: 'application/octet-stream',
    })
  })

  test('data that is falsely declared as an image, bad addresses, bad base64 and files of other APIs are refused', async () => {
    const refused = [
      { type: 'image_url', image_url: { url: dataUrl('image/png', '<html>') } },
      { type: 'image_url', image_url: { url: 'file:///etc/passwd' } },
      { type: 'file', file: { file_data: 'data:text/plain;base64,!!' } },
      { type: 'file', file: { file_id: 'file-abc' } },
    ]
    const errors = await Promise.all(refused.map((part) => errorOf(received(part))))
    expect(errors.map(({ status, code }) => [status, code])).toEqual([
      [400, 'invalid_image_format'],
      [400, 'invalid_value'],
      [400, 'invalid_value'],
      [400, 'unsupported_value'],
    ])
  })
})

describe('conversations', () => {
  test('the next user message answers the question of the agent, without a header', async () => {
    const messages = [user('weather')]
    const question = (await ask('weather')).choices[0]?.message.content ?? ''
    expect(question).toMatch(/^Which city\?\n\nReply to continue\. \(task [\da-f-]{36}\)$/)
    const all = [...messages, assistant(question), user('Rome')]
    const client = openAi()
    const answer = await client.chat.completions.create({ model: 'helper', messages: all })
    expect(answer.choices[0]?.message.content).toBe('Sun in Rome')
    const before = runs
    const repeated = await client.chat.completions.create({ model: 'helper', messages: all })
    expect(repeated.choices[0]?.message.content).toBe('Sun in Rome')
    expect(runs).toBe(before)
  })

  test('another caller, and a text that is not the question, do not reach the task', async () => {
    const question = (await ask('weather')).choices[0]?.message.content ?? ''
    const [, marker = ''] = /(\(task .*\))$/.exec(question) ?? []
    const say = async (caller: string, text: string) => {
      const messages = [user('weather'), assistant(text), user('hello')]
      const { choices } = await openAi(caller).chat.completions.create({ model: 'helper', messages })
      return choices[0]?.message.content
    }
    expect(await say('bob', question)).toBe('Hello')
    expect(await say('alice', `Your password? ${marker}`)).toBe('Hello')
    expect(await say('alice', question)).toBe('Sun in hello')
  })

  test('a header names the conversation, also for a client that sends one message at a time', async () => {
    const headers = { 'X-Parley-Context': 'kitchen talk' }
    const client = openAi('alice', { defaultHeaders: headers })
    const say = async (text: string, one = client) => {
      const { choices } = await one.chat.completions.create({ model: 'helper', messages: [user(text)] })
      return choices[0]?.message.content
    }
    expect(await say('hello')).toBe('Hello')
    expect(await say('earlier')).toBe('[["Hel\\u001b"]]'.replace('Hel\\u001b', 'Hello\\u001b'))
    expect(await say('weather')).toContain('Which city?')
    expect(await say('Oslo')).toBe('Sun in Oslo')
    expect(await say('earlier', openAi('bob', { defaultHeaders: headers }))).toBe('[]')
  })

  test('without a header, the agent reads the earlier messages of the body', async () => {
    const messages = [user('hello'), assistant('Hello'), user('earlier')]
    const { choices } = await openAi().chat.completions.create({ model: 'helper', messages })
    expect(choices[0]?.message.content).toBe('[["Hello"]]')
  })

  test('a bid is accepted or declined in words', async () => {
    const offer = (await ask('bid')).choices[0]?.message.content ?? ''
    expect(offer).toContain('The agent offers to do this for 0.5. Reply "yes" to accept or "no" to decline.')
    const answer = async (text: string) => {
      const messages = [user('bid'), assistant(offer), user(text)]
      return (await openAi().chat.completions.create({ model: 'helper', messages })).choices[0]?.message
        .content
    }
    expect(await answer('perhaps')).toBe(offer)
    expect(await answer('Yes, but only for 0.2')).toBe(offer)
    expect(await answer('No problem, begin')).toBe(offer)
    expect(await answer('Yes, please')).toBe('Done')
  })

  test('an agent cannot have a bid accepted with a text that does not state the offer', async () => {
    const offer = (await ask('bid')).choices[0]?.message.content ?? ''
    const [, marker = ''] = /(\(task .*\))$/.exec(offer) ?? []
    const messages = [user('hello'), assistant(`Shall I continue? ${marker}`), user('yes')]
    const completion = await openAi().chat.completions.create({ model: 'helper', messages })
    expect(completion.choices[0]?.message.content).not.toBe('Done')
  })
})

test('a repeated request with an Idempotency-Key is answered by the first task', async () => {
  const headers = { 'Idempotency-Key': 'once' }
  const create = (text: string) =>
    openAi().chat.completions.create({ model: 'helper', messages: [user(text)] }, { headers })
  const [first, second] = [await create('hello'), await create('hello')]
  expect([second.id, second.choices, runs]).toEqual([first.id, first.choices, 1])
  expect(await errorOf(create('json'))).toMatchObject({ status: 400 })
})

test('a stream that shows the task of an earlier request has its whole answer', async () => {
  const question = (await ask('weather')).choices[0]?.message.content ?? ''
  const messages = [user('weather'), assistant(question), user('Rome')]
  const stream = async () => {
    const chunks = await openAi().chat.completions.create({ model: 'helper', messages, stream: true })
    return (await Array.fromAsync(chunks)).map(({ choices }) => choices[0]?.delta.content ?? '').join('')
  }
  expect([await stream(), await stream(), runs]).toEqual(['Sun in Rome', 'Sun in Rome', 2])
})

describe('bad input', () => {
  const body = (more: object) => ({ model: 'helper', messages: [user('hello')], ...more })

  test('parameters that agents cannot follow and malformed bodies are refused with the parameter', async () => {
    const deep = `{"model":${'['.repeat(200)}${']'.repeat(200)}}`
    const rows: [given: string | object, param: string | null, code: string | null][] = [
      [body({ n: 2 }), 'n', 'unsupported_value'],
      [body({ logprobs: true }), 'logprobs', 'unsupported_value'],
      [body({ modalities: ['text', 'audio'] }), 'modalities', 'unsupported_value'],
      [body({ tool_choice: 'required' }), 'tool_choice', 'unsupported_value'],
      [body({ response_format: { type: 'json_schema' } }), 'response_format', 'unsupported_value'],
      [body({ messages: [] }), 'messages', 'invalid_value'],
      [body({ messages: [assistant('hi')] }), 'messages[0].role', 'invalid_value'],
      [body({ messages: Array(10_001).fill(user('a')) }), 'messages', 'invalid_value'],
      ['{"model":', null, 'invalid_json'],
      [deep, null, null],
    ]
    const answers = await Promise.all(rows.map(([given]) => postRaw('/v1/chat/completions', given)))
    const type = 'invalid_request_error'
    const shown = answers.map(({ status, json }) => [
      status,
      json.error?.type,
      json.error?.['param'],
      json.error?.code,
    ])
    expect(shown).toEqual(rows.map(([, param, code]) => [400, type, param, code]))
    expect(runs).toBe(0)
  })

  test('unknown fields, tools and sampling parameters are ignored, and 10,000 messages are accepted', async () => {
    const messages = [...Array(9_999).fill(user('a')), assistant('b'), user('hello')].slice(-10_000)
    const more = {
      tools: [{ type: 'function' }],
      temperature: 2,
      stop: ['x'],
      n: 1,
      unknown: { a: 1 },
      messages,
    }
    const { status, json } = await postRaw('/v1/chat/completions', body(more))
    expect([status, json.choices?.[0]?.message.content]).toEqual([200, 'Hello'])
  })

  test('errors outside the handlers have the same form', async () => {
    const nowhere = await postRaw('/v1/embeddings', {})
    expect([nowhere.status, nowhere.json.error?.code]).toEqual([404, 'unknown_url'])
    const wrongType = await postRaw('/v1/chat/completions', '{}', { 'content-type': 'text/plain' })
    expect([wrongType.status, wrongType.json.error?.type]).toEqual([415, 'invalid_request_error'])
    const large = await postRaw('/v1/chat/completions', `"${'a'.repeat(11 * 1024 * 1024)}"`)
    expect([large.status, large.json.error?.code]).toEqual([413, 'request_too_large'])
    const withoutKey = await postRaw('/v1/responses', {}, { authorization: '' })
    expect([withoutKey.status, withoutKey.json.error?.code]).toEqual([401, 'invalid_api_key'])
  })
})
