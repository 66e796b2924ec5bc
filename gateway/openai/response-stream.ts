import { ParleyError } from '@parley/wire/errors'
import { isResting } from '@parley/wire/model/task'
import type { TaskChange } from '../calls/agent-calls.ts'
import { restOf } from './chat-stream.ts'
import { errorBody } from './error-answer.ts'
import {
  emptyMessage,
  errorOf,
  type MessageItem,
  numberOf,
  type OutputItem,
  outputOf,
  type ResponseView,
  responseObject,
} from './response-answer.ts'
import { CurrentTask, type TurnTask } from './run-turn.ts'

type Event = { type: string } & Record<string, unknown>

/** Returns the events of a streamed response after the first change of the task, with their numbers. */
export async function* responseEvents(
  first: TurnTask,
  changes: AsyncIterable<TaskChange>,
  view: ResponseView,
): AsyncGenerator<Event> {
  let number = 0
  try {
    for await (const event of events(first, changes, view)) yield { ...event, sequence_number: number++ }
  } catch (thrown) {
    const { message, code, param } = errorBody(ParleyError.from(thrown))
    yield { type: 'error', code, message, param, sequence_number: number }
  }
}

async function* events(
  first: TurnTask,
  changes: AsyncIterable<TaskChange>,
  view: ResponseView,
): AsyncGenerator<Event> {
  const pending = responseObject(first, view, { status: 'in_progress', output: [], error: null })
  yield { type: 'response.created', response: pending }
  yield { type: 'response.in_progress', response: pending }
  const current = new CurrentTask(first)
  const message = emptyMessage(first.task.id, numberOf(first.task))
  let sent = ''
  for await (const change of changes) {
    const text = current.apply(change)
    if (text !== '' && !view.isJson) {
      if (sent === '') yield* opening(message)
      sent += text
      yield delta(message, text)
    }
    if (isResting(current.task.status.state)) break
  }
  const ended = await view.reread(current.turn)
  const { task } = ended
  const { state } = task.status
  if (state === 'failed' || state === 'canceled') {
    const error =
      state === 'failed' ? errorOf(task) : { code: 'server_error', message: 'The task was canceled.' }
    yield {
      type: 'response.failed',
      response: responseObject(ended, view, { status: 'failed', output: [], error }),
    }
    return
  }
  const output = await outputOf(ended, view)
  for (const [index, item] of output.entries())
    yield* item.type === 'message' ? closing(item, message, sent) : added(item, index)
  yield {
    type: 'response.completed',
    response: responseObject(ended, view, { status: 'completed', output, error: null }),
  }
}

const position = ({ id }: MessageItem) => ({ item_id: id, output_index: 0, content_index: 0 })

const emptyText = { type: 'output_text', text: '', annotations: [], logprobs: [] }

function* opening(message: MessageItem): Generator<Event> {
  yield { type: 'response.output_item.added', output_index: 0, item: message }
  yield { type: 'response.content_part.added', ...position(message), part: emptyText }
}

const delta = (message: MessageItem, text: string): Event => ({
  type: 'response.output_text.delta',
  ...position(message),
  delta: text,
  logprobs: [],
})

/** Sends the text that is missing, and the end of the message. */
function* closing(item: MessageItem, message: MessageItem, sent: string): Generator<Event> {
  const [part] = item.content
  if (part?.type === 'refusal') {
    if (sent === '') yield { type: 'response.output_item.added', output_index: 0, item: message }
    yield { type: 'response.refusal.done', ...position(item), refusal: part.refusal }
  } else if (part !== undefined) {
    if (sent === '') yield* opening(message)
    const rest = restOf(sent, part.text)
    if (rest !== '') yield delta(message, rest)
    yield { type: 'response.output_text.done', ...position(item), text: part.text, logprobs: [] }
    yield { type: 'response.content_part.done', ...position(item), part }
  }
  yield { type: 'response.output_item.done', output_index: 0, item }
}

function* added(item: OutputItem, index: number): Generator<Event> {
  yield { type: 'response.output_item.added', output_index: index, item }
  yield { type: 'response.output_item.done', output_index: index, item }
}
