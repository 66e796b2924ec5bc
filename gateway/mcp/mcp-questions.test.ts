import { describe, expect, test } from 'vitest'
import { bearer, gateway, gatewayForEachTest } from '../testing.ts'
import { type Era, mcpAgent, mcpClient, rpc } from './testing.ts'

gatewayForEachTest({ MCP_ANSWER_AFTER_MS: '5000' })

const eras: Era[] = ['2026-07-28', '2025-11-25']
const form = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }

describe.each(eras)('a client of %s', (era) => {
  test('that shows forms answers a question during the call', async () => {
    await mcpAgent('weather', ({ ask, data }) =>
      typeof data['place'] === 'object' ? `sunny in ${JSON.stringify(data)}` : ask('Where?', inputs),
    )
    const inputs = { inputs: { place: { message: 'Which city?', schema: form } } }
    const client = await mcpClient(era, { capabilities: { elicitation: {} } })
    client.setRequestHandler('elicitation/create', ({ params }) => {
      expect(params).toMatchObject({ message: 'Which city?', requestedSchema: form })
      return { action: 'accept', content: { city: 'Rome' } }
    })
    const result = await client.callTool({ name: 'weather__run', arguments: { text: 'the weather' } })
    expect(result.content[0]).toMatchObject({ text: 'sunny in {"place":{"city":"Rome"}}' })
  })

  test('that shows no forms receives the question, and answer_task answers it', async () => {
    await mcpAgent('weather', ({ ask, text }) => (text === 'Rome' ? 'sunny' : ask('Where?')))
    const client = await mcpClient(era)
    const first = await client.callTool({ name: 'weather__run', arguments: { text: 'the weather' } })
    expect(first.content[0]).toMatchObject({ text: 'Where?' })
    const task_id = first._meta?.['parley/task_id']
    const result = await client.callTool({ name: 'answer_task', arguments: { task_id, text: 'Rome' } })
    expect(result.content[0]).toMatchObject({ text: 'sunny' })
  })
})

const withForms = { capabilities: { elicitation: {} } }
const call = async (params: Record<string, unknown>, options: object = {}) =>
  (await rpc('tools/call', params, { ...withForms, ...options })).json

test('an answer belongs to the caller and to its question, even if the tool has been removed', async () => {
  await mcpAgent('weather', ({ ask, text }) => (text.startsWith('x') ? ask(`again ${text}`) : text))
  const tool = { name: 'weather__run', arguments: { text: 'x' } }
  const { requestState, inputRequests } = (await call(tool)).result
  expect(inputRequests.answer.params).toMatchObject({ mode: 'form', message: 'again x' })
  const answered = (answer: string) => ({
    ...tool,
    requestState,
    inputResponses: { answer: { action: 'accept', content: { answer } } },
  })
  expect((await call(answered('y'), { caller: 'mallory' })).error).toMatchObject({ code: -32602 })
  const tampered = { ...answered('y'), requestState: `${requestState.slice(0, -4)}AAAA` }
  expect((await call(tampered)).error).toMatchObject({ code: -32602 })
  const renamed = { ...answered('x again'), name: 'removed__run' }
  expect((await call(renamed)).result.inputRequests.answer.params.message).toBe('again x again')
  const repeated = (await call(answered('y'))).result
  expect(repeated).toMatchObject({ resultType: 'input_required' })
  expect(repeated.requestState).not.toBe(requestState)
})

test('a dismissed question leaves the task paused, and a declined one is an answer', async () => {
  await mcpAgent('weather', ({ ask, text }) => (text === 'x' ? ask('Where?') : text))
  const tool = { name: 'weather__run', arguments: { text: 'x' } }
  const { requestState } = (await call(tool)).result
  const respond = (action: string) => call({ ...tool, requestState, inputResponses: { answer: { action } } })
  expect((await respond('cancel')).result.resultType).toBe('input_required')
  expect((await respond('decline')).result.content[0].text).toContain('declined')
})

test('the task goes on after its client has disconnected', async () => {
  const { promise, resolve } = Promise.withResolvers<string>()
  const started = Promise.withResolvers<string>()
  await mcpAgent('slow', ({ task }) => {
    started.resolve(task.id)
    return promise
  })
  const gone = new AbortController()
  const params = { name: 'slow__run', arguments: { text: 'go' } }
  const sent = fetch(`${gateway().addresses.public}/mcp`, {
    method: 'POST',
    signal: gone.signal,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: bearer('alice'),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  }).then((response) => response.text())
  const taskId = await started.promise
  gone.abort()
  await expect(sent).rejects.toThrow(/abort/i)
  resolve('done')
  const get = () => call({ name: 'get_task', arguments: { task_id: taskId } })
  await expect.poll(async () => (await get()).result.content[0].text).toBe('done')
})
