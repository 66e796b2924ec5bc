import { version } from '@parley/kit/process/version'
import { ParleyError } from '@parley/wire/errors'
import type { Task } from '@parley/wire/model/task'
import { errorBody } from './error-answer.ts'
import { completionId } from './ids.ts'
import { requireAnswer, type TurnTask } from './run-turn.ts'
import { answerOf, fileAsMarkdown, isQuestion, jsonAnswerOf, reasonOf } from './task-answer.ts'
import { chatUsage } from './usage.ts'

export interface ChatView {
  isJson: boolean
  /** The address of the API, for links to files. */
  apiUrl: string
  /** Returns the pause of a task as text. */
  question: (turn: TurnTask) => Promise<string>
  /** Reads the task of a stream with its history. */
  reread: (turn: TurnTask) => Promise<TurnTask>
  /** Seconds since 1970. */
  created: number
}

/** The message of the assistant. `content` also has a refusal, because many clients show only the content. */
interface AssistantMessage {
  role: 'assistant'
  content: string
  refusal: string | null
}

/** Returns the `chat.completion` of a task. @throws ParleyError if the task has no answer */
export async function chatCompletion(turn: TurnTask, view: ChatView) {
  const message = await messageOf(turn, view)
  return {
    ...head(turn, view, 'chat.completion'),
    choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
    usage: chatUsage(turn.task),
    parley: extension(turn),
  }
}

/** Returns the answer of a task as text. @throws ParleyError if the task has no answer */
export async function messageOf(turn: TurnTask, view: ChatView): Promise<AssistantMessage> {
  requireAnswer(turn)
  const { task } = turn
  if (isQuestion(task)) return { role: 'assistant', content: await view.question(turn), refusal: null }
  if (task.status.state === 'rejected') {
    const refusal = reasonOf(task, 'The agent declined this task.')
    return { role: 'assistant', content: refusal, refusal }
  }
  return {
    role: 'assistant',
    content: view.isJson ? jsonOf(task) : markdownOf(task, view.apiUrl),
    refusal: null,
  }
}

/** @throws ParleyError if the result is not JSON */
export function jsonOf(task: Task): string {
  const json = jsonAnswerOf(task)
  if (json !== undefined) return json
  throw new ParleyError('InvalidAgentResponse', {
    status: 502,
    message:
      'The answer of the agent is not JSON. Send the request without response_format to get it as text.',
    data: { taskId: task.id, reason: 'not_json' },
    headers: { 'x-should-retry': 'false' },
  })
}

function markdownOf(task: Task, apiUrl: string): string {
  const { text, files } = answerOf(task)
  return [text, ...files.map((file) => fileAsMarkdown(file, apiUrl))].filter((one) => one !== '').join('\n\n')
}

/** A piece of a streamed answer. */
export interface ChatDelta {
  role?: 'assistant'
  content?: string
  refusal?: string
}

/** Returns a `chat.completion.chunk`. */
export function chatChunk(turn: TurnTask, view: ChatView, delta: ChatDelta, finished = false) {
  return {
    ...head(turn, view, 'chat.completion.chunk'),
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finished ? 'stop' : null }],
    ...(finished && { parley: extension(turn) }),
  }
}

/** Returns the last chunk of a stream with `include_usage`. */
export function usageChunk(turn: TurnTask, view: ChatView) {
  return { ...head(turn, view, 'chat.completion.chunk'), choices: [], usage: chatUsage(turn.task) }
}

/** Returns the event of an error after the start of a stream. */
export const errorEvent = (error: unknown) => ({ error: errorBody(ParleyError.from(error)) })

function head({ task, agent }: TurnTask, { created }: ChatView, object: string) {
  return {
    id: completionId(task.id),
    object,
    created,
    model: agent ?? 'auto',
    system_fingerprint: `parley-${version}`,
  }
}

/** The task behind an answer. Clients ignore unknown fields. */
export function extension({ task, agent, decisionId }: TurnTask) {
  return {
    task_id: task.id,
    context_id: task.contextId,
    state: task.status.state,
    ...(agent !== undefined && { agent }),
    ...(decisionId !== undefined && { decision_id: decisionId }),
  }
}
