import { expect, test } from 'vitest'
import { fileFault, filesMaxBytes } from './attachments.js'
import { bidOf, newTurn, textOf, turnAfter, turnOfTask, turnWithReply } from './conversation.js'
import { frames } from './frames.js'
import { curlOf, messageRequest, partsOf, pathOf, readableJson } from './requests.js'

const taskId = '01a2059c-80db-71c4-9790-1ec9171ffe8f'
const text = (value: string) => ({ kind: 'text', text: value })
const status = (sequence: number, state: string, said?: string) => ({
  kind: 'status-update',
  task_id: taskId,
  sequence,
  status: { state, ...(said !== undefined && { message: { role: 'agent', parts: [text(said)] } }) },
})
const delta = (value: string, append: boolean) => ({
  kind: 'artifact-update',
  task_id: taskId,
  append,
  artifact: { artifact_id: 'a', name: 'result', parts: [text(value)] },
})
const after = (...events: Parameters<typeof turnAfter>[1][]) =>
  events.reduce(turnAfter, newTurn('key', [text('hello')]))

test('deltas extend the text of an artifact, and the finished artifact replaces it', () => {
  const streamed = after(status(0, 'submitted'), delta('Hel', false), delta('lo', true))
  expect(streamed.artifacts).toMatchObject([{ partial: true, parts: [text('Hello')] }])
  const finished = turnAfter(streamed, { ...delta('Hello!', false), sequence: 2 })
  expect(finished.artifacts).toMatchObject([{ partial: false, parts: [text('Hello!')] }])
})

test('an event that arrives twice changes a turn once', () => {
  const turn = after(status(1, 'working'), status(2, 'input-required', 'Which column?'))
  expect(turnAfter(turn, status(2, 'input-required', 'Which column?'))).toEqual(turn)
  expect(turn.messages.map(({ parts }) => textOf(parts))).toEqual(['hello', 'Which column?'])
})

test('a stream that starts again with the current status does not repeat its message', () => {
  const turn = after(status(2, 'input-required', 'Which column?'))
  expect(turnAfter(turn, status(0, 'input-required', 'Which column?')).messages).toHaveLength(2)
})

test('the answer to a pause is part of the same turn', () => {
  const turn = turnWithReply(after(status(2, 'input-required', 'Which column?')), [text('sales')])
  expect(turn).toMatchObject({ taskId, state: 'sending' })
  expect(turn.messages.map(({ role }) => role)).toEqual(['user', 'agent', 'user'])
})

test('a progress message is shown until the next status', () => {
  expect(after(status(1, 'working', 'page 3 of 9')).progress).toBe('page 3 of 9')
  expect(after(status(1, 'working', 'page 3 of 9'), status(2, 'completed')).progress).toBe('')
})

test('a stored task shows its result once', () => {
  const turn = turnOfTask({
    id: taskId,
    context_id: 'c',
    status: { state: 'completed' },
    history: [
      { role: 'user', parts: [text('2 + 2')] },
      { role: 'assistant', parts: [text('4')] },
    ],
    artifacts: [{ artifact_id: 'a', name: 'result', parts: [text('4')] }],
  })
  expect(turn.messages).toEqual([{ role: 'user', parts: [text('2 + 2')] }])
  expect(turn.artifacts).toHaveLength(1)
})

test('the offer of a task that waits for an acceptance is its data part', () => {
  const offer = { amount: '0.02' }
  const said = { role: 'agent', parts: [text('I offer'), { kind: 'data', data: offer }] }
  const event = { ...status(1, ''), status: { state: 'negotiation-bid-submitted', message: said } }
  expect(bidOf(after(event))).toEqual(offer)
  expect(bidOf(after(status(1, 'input-required', 'Which?')))).toBeUndefined()
})

test('frames are read across chunks and without comments', async () => {
  const chunks = ['id: 1\nda', 'ta: {"a"', ':1}\n\n: keep-alive\n\ndata: {"b":', '"é"}\r\n\r\n', 'data: lost']
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk))
      controller.close()
    },
  })
  expect(await Array.fromAsync(frames(body))).toEqual(['{"a":1}', '{"b":"é"}'])
})

test('a message continues a paused task and names the session that pays', () => {
  const { method, params } = messageRequest({
    parts: partsOf('go on', [{ name: 'a.csv', type: 'text/csv', size: 1, bytes: 'YQ==' }]),
    contextId: 'c',
    taskId,
    paymentSession: 's',
  })
  expect(method).toBe('message/stream')
  expect(params).toMatchObject({
    message: {
      taskId,
      contextId: 'c',
      metadata: { payment_session_id: 's' },
      parts: [text('go on'), { kind: 'file', file: { name: 'a.csv', mime_type: 'text/csv', bytes: 'YQ==' } }],
    },
  })
})

test('the calls of a conversation go to the gateway or to the agent that it names', () => {
  expect([pathOf('auto'), pathOf('notes')]).toEqual(['/', '/agents/notes/'])
})

test('the curl command quotes every character of the request', () => {
  const request = messageRequest({ parts: [text(`it's $(rm) \`x\``)], contextId: 'c' })
  expect(curlOf('http://127.0.0.1:7400/', request)).toContain(`it'\\''s $(rm) \`x\``)
})

test('long strings of a request are shortened for people', () => {
  expect(readableJson({ bytes: 'x'.repeat(5000) })).toContain('(5,000 characters)')
})

test.each([
  [[{ name: 'a', size: 0 }], 'is empty'],
  [[{ name: 'a', size: filesMaxBytes + 1 }], 'may have 7.0 MiB in total'],
  [Array.from({ length: 21 }, () => ({ name: 'a', size: 1 })), 'at most 20 files'],
])('files over a limit are refused with a sentence', (files, sentence) => {
  expect(fileFault(files, [])).toContain(sentence)
})

test('files within the limits are accepted', () => {
  expect(fileFault([{ name: 'a', size: 10 }], [{ size: 20 }])).toBeUndefined()
})
