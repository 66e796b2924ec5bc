import { idsOf } from '@parley/wire/model/ids'
import type { JsonObject, Task } from '@parley/wire/model/task'
import type { AgentMessage, CallerCalls, TaskAddress } from '../calls/agent-calls.ts'
import { unlessMissing } from '../calls/agent-calls.ts'
import { idOfValues } from './ids.ts'
import { answerTo, isQuestionOf, taskIdIn } from './question.ts'
import { isQuestion } from './task-answer.ts'
import { conversationOf, lastAnswerIn, negotiatedModel, type Turn } from './turn.ts'

/** The effect of a request: it sends a message, or shows a task that already has the message or cannot use it. */
export type Placed = { kind: 'message'; message: AgentMessage } | { kind: 'task'; address: TaskAddress }

export interface Conversation {
  /** The caller who owns the tasks. */
  owner: string
  calls: Pick<CallerCalls, 'getTask' | 'listTasks'>
  /** Returns the slug of the agent to which the gateway routes the messages of a context; undefined for a new one. */
  agentOf: (contextId: string) => Promise<string | undefined>
  /** The name of the conversation, chosen by the client, or the id of a context. */
  context?: string | undefined
  /** The task that the client names as the previous one. */
  previous?: Task | undefined
  idempotencyKey?: string | undefined
  /** The payment in the headers of the request, as metadata of the message. */
  payment: JsonObject | undefined
  /** Returns the metadata that pays for a paused task if its caller has paid on the payment page. */
  paidFor: (task: Task) => Promise<JsonObject | undefined>
}

/** Decides to which task and context the newest message belongs (spec/openai.md#conversations). */
export async function placeTurn(turn: Turn, conversation: Conversation): Promise<Placed> {
  const { context, previous, owner } = conversation
  const agent = agentOf(turn)
  if (previous !== undefined) {
    if (isQuestion(previous)) return answering(turn, previous, conversation)
    return newTask(turn, conversation, { contextId: previous.contextId })
  }
  const marked = await markedTask(turn, conversation)
  if (marked !== undefined) return marked
  if (context === undefined) return newTask(turn, conversation)
  const { id: contextId, name } = idsOf(owner)(context)
  const at = agent ?? (await conversation.agentOf(contextId))
  const [newest] =
    at === undefined ? [] : await conversation.calls.listTasks({ contextId, agent: at, limit: 1 })
  if (newest !== undefined && isQuestion(newest)) return answering(turn, newest, conversation)
  return newTask(turn, conversation, { contextId, ...(name !== undefined && { contextName: name }) })
}

/** The slug of the named agent. */
const agentOf = ({ model }: Turn) => (model === negotiatedModel ? undefined : model)

/** Finds the task that the previous message of the assistant names, if that message is its question. */
async function markedTask(turn: Turn, conversation: Conversation): Promise<Placed | undefined> {
  const question = lastAnswerIn(turn)
  const taskId = question === undefined ? undefined : taskIdIn(question)
  if (question === undefined || taskId === undefined) return undefined
  const address = { taskId, agent: agentOf(turn) }
  const task = await conversation.calls.getTask(address).catch(unlessMissing)
  if (task === undefined) return undefined
  const messageId = idOfAnswer(task, question, turn)
  // A repeated request, for example after a lost connection, shows the task that already has the message.
  if (task.history.some((message) => message.messageId === messageId)) return { kind: 'task', address }
  if (!isQuestion(task) || !isQuestionOf(task, question)) return undefined
  return answering(turn, task, conversation, messageId)
}

const idOfAnswer = ({ id }: Task, question: string, { parts }: Turn) => idOfValues(id, question.trim(), parts)

async function answering(
  turn: Turn,
  task: Task,
  conversation: Conversation,
  messageId?: string,
): Promise<Placed> {
  const agent = agentOf(turn)
  const address = { taskId: task.id, agent }
  const parts = answerTo(task, turn.parts)
  if (parts === undefined) return { kind: 'task', address }
  let { payment } = conversation
  if (task.status.state === 'payment-required') {
    payment ??= await conversation.paidFor(task)
    // The question is repeated, with the current payment page.
    if (payment === undefined) return { kind: 'task', address }
  }
  const { idempotencyKey } = conversation
  return {
    kind: 'message',
    message: {
      agent,
      message: {
        parts,
        taskId: task.id,
        contextId: task.contextId,
        messageId: messageId ?? idOf(conversation, parts),
        metadata: { ...turn.metadata, ...payment },
      },
      acceptedOutputModes: modesOf(turn),
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    },
  }
}

function newTask(
  turn: Turn,
  conversation: Conversation,
  context?: { contextId: string; contextName?: string },
): Placed {
  const { payment, idempotencyKey } = conversation
  // The agent has the earlier messages of a context.
  const earlier = context === undefined ? turn.earlier : turn.earlier.filter(({ role }) => role === 'system')
  const { parts } = turn
  return {
    kind: 'message',
    message: {
      agent: agentOf(turn),
      message: {
        parts,
        ...context,
        messageId: idOf(conversation, parts),
        metadata: { ...turn.metadata, ...conversationOf(earlier), ...payment },
      },
      acceptedOutputModes: modesOf(turn),
      ...(idempotencyKey !== undefined && { idempotencyKey }),
    },
  }
}

/** A repeated request with an idempotency key must have the same content. */
function idOf({ owner, idempotencyKey }: Conversation, parts: Turn['parts']): string {
  return idempotencyKey === undefined ? crypto.randomUUID() : idOfValues(owner, idempotencyKey, parts)
}

const modesOf = ({ isJson }: Turn) => (isJson ? ['application/json'] : undefined)
