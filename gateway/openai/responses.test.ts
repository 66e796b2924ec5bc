import type { HandlerContext, Output } from '@parley/agent'
import { file } from '@parley/agent'
import { beforeAll, expect, test } from 'vitest'
import { gatewayForAllTests } from '../testing.ts'
import { errorOf, openAi, startAgent } from './testing.ts'

gatewayForAllTests()

async function* handle(context: HandlerContext): AsyncGenerator<Output> {
  const { text, history, signal } = context
  const [first] = history[0]?.parts ?? []
  const command = first?.kind === 'text' ? first.text : text
  if (command === 'hello') {
    context.usage({ model: 'small', inputTokens: 3, outputTokens: 2 })
    yield 'Hel'
    yield 'lo'
  } else if (command === 'weather') {
    if (history.length === 1) yield context.ask('Which city?')
    else yield `Sun in ${text}`
  } else if (command === 'files') {
    yield 'Two files'
    yield file('a.png', 'image/png', Buffer.from('png'))
    yield file('a.csv', 'text/csv', Buffer.from('a,b'))
  } else if (command === 'fail') throw new Error('the database is on fire')
  else if (command === 'decline') yield context.decline('I only do weather.')
  else if (command === 'wait') await new Promise((resolve) => signal.addEventListener('abort', resolve))
  else yield context.context.history.map((turn) => turn.text).join(' ')
}

beforeAll(async () => {
  const agent = await startAgent('helper', {
    handle,
    skills: [{ id: 'help', name: 'Weather', description: 'The weather' }],
  })
  return () => agent[Symbol.asyncDispose]()
})

const create = (input: string, more: object = {}) =>
  openAi().responses.create({ model: 'helper', input, ...more })

test('a response has the text, and the same id returns it again, only to its caller', async () => {
  const response = await create('hello', { metadata: { purpose: 'test' } })
  expect(response).toMatchObject({
    object: 'response',
    status: 'completed',
    model: 'helper',
    output_text: 'Hello',
    error: null,
    metadata: { purpose: 'test' },
    usage: { input_tokens: 3, output_tokens: 2, total_tokens: 5 },
  })
  const again = await openAi().responses.retrieve(response.id)
  expect(again).toMatchObject({ id: response.id, model: 'helper', output: response.output })
  expect(await errorOf(openAi('bob').responses.retrieve(response.id))).toMatchObject({
    status: 404,
    code: 'response_not_found',
  })
  expect(await errorOf(openAi().responses.retrieve('resp_1'))).toMatchObject({ status: 404 })
})

test('the events of a stream build the response', async () => {
  const stream = openAi().responses.stream({ model: 'helper', input: 'hello' })
  const types: string[] = []
  for await (const event of stream) types.push(event.type)
  expect(types.slice(0, 4)).toEqual([
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
  ])
  expect(types.slice(-4)).toEqual([
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ])
  expect(await stream.finalResponse()).toMatchObject({
    status: 'completed',
    output_text: 'Hello',
    usage: { total_tokens: 5 },
  })
})

test('previous_response_id answers the question of the agent, and both responses stay readable', async () => {
  const asked = await create('weather')
  expect(asked).toMatchObject({ status: 'completed', output_text: expect.stringContaining('Which city?') })
  const answered = await create('Rome', { previous_response_id: asked.id })
  expect(answered).toMatchObject({ output_text: 'Sun in Rome', previous_response_id: asked.id })
  expect(answered.id).not.toBe(asked.id)
  const before = await openAi().responses.retrieve(asked.id)
  expect(before.output).toMatchObject([{ content: [{ text: 'Which city?' }] }])
  const next = await create('earlier', { previous_response_id: answered.id })
  expect(next.output_text).toBe('Sun in Rome')
  const foreign = openAi('bob').responses.create({
    model: 'helper',
    input: 'a',
    previous_response_id: asked.id,
  })
  expect(await errorOf(foreign)).toMatchObject({ status: 404, code: 'previous_response_not_found' })
})

test('a conversation answers the question of its newest task', async () => {
  const conversation = 'talk'
  await create('hello', { conversation })
  expect((await create('earlier', { conversation: { id: conversation } })).output_text).toBe('Hello')
  const asked = await openAi().responses.create({ model: 'helper', input: 'weather', conversation: 'café\n' })
  expect(asked).toMatchObject({ conversation: { id: 'café\n' } })
  expect((await create('weather', { conversation })).conversation).toEqual({ id: 'talk' })
  expect((await create('Oslo', { conversation })).output_text).toBe('Sun in Oslo')
})

test('a conversation with auto stays at its agent and answers its question', async () => {
  const say = async (input: string) => {
    const request = { model: 'auto', input, conversation: 'with the best agent' }
    return (await openAi().responses.create(request)).output_text
  }
  expect(await say('weather')).toContain('Which city?')
  expect(await say('Lima')).toBe('Sun in Lima')
})

test('images are items, other files are links with an annotation', async () => {
  const { output } = await create('files')
  expect(output).toMatchObject([
    {
      type: 'message',
      content: [{ text: expect.stringContaining('[a.csv]('), annotations: [{ type: 'file_path' }] }],
    },
    { type: 'image_generation_call', result: Buffer.from('png').toString('base64') },
  ])
})

test('a failure is a failed response, a refusal is a refusal', async () => {
  expect(await create('fail')).toMatchObject({
    status: 'failed',
    error: { code: 'server_error', message: 'the database is on fire' },
  })
  expect((await create('decline')).output).toMatchObject([
    { content: [{ type: 'refusal', refusal: 'I only do weather.' }] },
  ])
  const stream = openAi().responses.stream({ model: 'helper', input: 'fail' })
  const events = await Array.fromAsync(stream)
  expect(events.at(-1)?.type).toBe('response.failed')
})

test('a response in the background is read and canceled', async () => {
  const { id, status } = await create('wait', { background: true })
  expect(['queued', 'in_progress']).toContain(status)
  expect(await openAi().responses.cancel(id)).toMatchObject({ id, status: 'cancelled' })
  expect(await openAi().responses.retrieve(id)).toMatchObject({ id, status: 'cancelled' })
})

test('a client that disconnects does not cancel the task', async () => {
  const stream = await openAi().responses.create({ model: 'helper', input: 'wait', stream: true })
  let id = ''
  for await (const event of stream) {
    if (event.type === 'response.created') id = event.response.id
    break
  }
  expect(await openAi().responses.retrieve(id)).toMatchObject({ status: 'in_progress' })
})

test('parameters that agents cannot follow are refused', async () => {
  const rows: [more: object, param: string][] = [
    [{ prompt: { id: 'p' } }, 'prompt'],
    [{ text: { format: { type: 'json_schema', name: 'a', schema: {} } } }, 'text.format'],
    [{ stream: true, background: true }, 'background'],
    [{ conversation: 'a', previous_response_id: 'resp_1' }, 'conversation'],
  ]
  const errors = await Promise.all(rows.map(([more]) => errorOf(create('hello', more))))
  expect(errors.map(({ status, param }) => [status, param])).toEqual(rows.map(([, param]) => [400, param]))
})
