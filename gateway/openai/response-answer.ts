import { isTerminal, type Message, type Task } from '@parley/wire/model/task'
import { millisOf } from '@parley/wire/model/timestamp'
import { extension, jsonOf } from './chat-answer.ts'
import { responseId } from './ids.ts'
import type { TurnTask } from './run-turn.ts'
import {
  type AnswerFile,
  answerOf,
  isCallers,
  isQuestion,
  plainText,
  reasonOf,
  turnsOf,
} from './task-answer.ts'
import { responseUsage } from './usage.ts'

export interface ResponseView {
  isJson: boolean
  apiUrl: string
  question: (turn: TurnTask) => Promise<string>
  /** Reads the task of a stream with its history. */
  reread: (turn: TurnTask) => Promise<TurnTask>
  /** The fields of the request that responses repeat. */
  request: {
    instructions?: string | null
    previousResponseId?: string | null
    conversation?: string | undefined
    background: boolean
  }
}

type Status = 'queued' | 'in_progress' | 'completed' | 'failed' | 'cancelled'

export interface MessageItem {
  type: 'message'
  id: string
  status: 'in_progress' | 'completed'
  role: 'assistant'
  content: (OutputText | { type: 'refusal'; refusal: string })[]
}
interface OutputText {
  type: 'output_text'
  text: string
  annotations: { type: 'file_path'; file_id: string; index: number }[]
  logprobs: never[]
}
interface ImageItem {
  type: 'image_generation_call'
  id: string
  status: 'completed'
  result: string
}
export type OutputItem = MessageItem | ImageItem

/** Returns the response of a task, which may still be in progress. */
export async function responseOf(turn: TurnTask, view: ResponseView) {
  const status = statusOf(turn.task)
  return responseObject(turn, view, {
    status,
    output: status === 'completed' ? await outputOf(turn, view) : [],
    error: status === 'failed' ? errorOf(turn.task) : null,
  })
}

/** Returns the response to one of the caller's earlier messages to the task; undefined if the task has no such message. */
export async function earlierResponseOf({ task, ...turn }: TurnTask, number: number, view: ResponseView) {
  const messages = task.history
  const starts = messages.flatMap((message, index) => (isCallers(message) ? [index] : []))
  const [from, to] = [starts[number - 1], starts[number]]
  if (from === undefined) return undefined
  const said = messages.slice(from + 1, to).flatMap((message: Message) => message.parts)
  const output = [messageItem(task.id, number, { text: plainText(said), files: [] }, view.apiUrl)]
  return responseObject({ ...turn, task }, view, { status: 'completed', output, error: null }, number)
}

export function responseObject(
  turn: TurnTask,
  { isJson, request }: ResponseView,
  answer: { status: Status; output: OutputItem[]; error: object | null },
  number = numberOf(turn.task),
) {
  const { task, agent } = turn
  return {
    id: responseId(task.id, number),
    object: 'response',
    created_at: Math.floor(millisOf(task.status.timestamp) / 1000),
    status: answer.status,
    background: request.background,
    error: answer.error,
    incomplete_details: null,
    instructions: request.instructions ?? null,
    max_output_tokens: null,
    model: agent ?? 'auto',
    output: answer.output,
    parallel_tool_calls: false,
    previous_response_id: request.previousResponseId ?? null,
    conversation: { id: request.conversation ?? task.contextId },
    reasoning: { effort: null, summary: null },
    store: true,
    temperature: null,
    text: { format: { type: isJson ? 'json_object' : 'text' } },
    tool_choice: 'auto',
    tools: [],
    top_p: null,
    truncation: 'disabled',
    usage: isTerminal(task.status.state) || isQuestion(task) ? responseUsage(task) : null,
    user: null,
    metadata: metadataOf(task),
    parley: extension(turn),
  }
}

export const numberOf = (task: Task) => Math.max(1, turnsOf(task))

const statuses: Readonly<Record<string, Status>> = {
  submitted: 'queued',
  working: 'in_progress',
  failed: 'failed',
  canceled: 'cancelled',
}

/** A task that waits for its caller has a complete response: the question. */
const statusOf = ({ status }: Task): Status => statuses[status.state] ?? 'completed'

export function errorOf(task: Task) {
  return { code: 'server_error', message: reasonOf(task, 'The agent could not complete the task.') }
}

/** Returns the strings in the metadata of the caller's newest message, which are those of the request. */
function metadataOf({ history }: Task): Record<string, string> {
  const entries = Object.entries(history.findLast(isCallers)?.metadata ?? {})
  return Object.fromEntries(
    entries.flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : [])),
  )
}

/** @throws ParleyError InvalidAgentResponse if the caller requested JSON and the result is none */
export async function outputOf(turn: TurnTask, view: ResponseView): Promise<OutputItem[]> {
  const { task } = turn
  const number = numberOf(task)
  if (isQuestion(task))
    return [messageItem(task.id, number, { text: await view.question(turn), files: [] }, view.apiUrl)]
  if (task.status.state === 'rejected') {
    const refusal = reasonOf(task, 'The agent declined this task.')
    return [
      { ...emptyMessage(task.id, number), status: 'completed', content: [{ type: 'refusal', refusal }] },
    ]
  }
  if (view.isJson) return [messageItem(task.id, number, { text: jsonOf(task), files: [] }, view.apiUrl)]
  const { text, files } = answerOf(task)
  const images = files.filter(isImage)
  const others = files.filter((file) => !isImage(file))
  return [messageItem(task.id, number, { text, files: others }, view.apiUrl), ...images.map(imageItem)]
}

export function emptyMessage(taskId: string, number: number): MessageItem {
  const id = responseId(taskId, number).replace('resp_', 'msg_')
  return { type: 'message', id, status: 'in_progress', role: 'assistant', content: [] }
}

function messageItem(
  taskId: string,
  number: number,
  { text, files }: { text: string; files: AnswerFile[] },
  apiUrl: string,
): MessageItem {
  return { ...emptyMessage(taskId, number), status: 'completed', content: [outputText(text, files, apiUrl)] }
}

/** Files other than images are links in the text, with an annotation for programs. */
function outputText(text: string, files: readonly AnswerFile[], apiUrl: string): OutputText {
  const annotations: OutputText['annotations'] = []
  let whole = text
  for (const { id, name, bytes, uri } of files) {
    const isStored = bytes !== undefined
    whole += whole === '' ? '' : '\n\n'
    if (isStored) annotations.push({ type: 'file_path', file_id: id, index: whole.length })
    whole += `[${name}](${isStored ? `${apiUrl}/files/${id}/content` : (uri ?? '')})`
  }
  return { type: 'output_text', text: whole, annotations, logprobs: [] }
}

const isImage = ({ type, bytes }: AnswerFile) =>
  bytes !== undefined && /^image\/(png|jpeg|gif|webp)$/.test(type)

function imageItem({ id, bytes = '' }: AnswerFile): ImageItem {
  return { type: 'image_generation_call', id: id.replace('file-', 'ig_'), status: 'completed', result: bytes }
}
