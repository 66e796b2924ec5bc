import { hash } from 'node:crypto'
import type { Message, Task } from '@parley/wire/model/task'
import { uuidOfHash } from '@parley/wire/model/uuid'
import { z } from 'zod'

const stated = z
  .array(z.object({ role: z.enum(['user', 'assistant', 'system']), text: z.string() }))
  .max(1000)

/** The newest turns that a handler sees, as for the tasks of a context. */
const turnsMax = 50

/**
 * Returns the conversation that the client states in `metadata.conversation` as tasks: each has the messages up to an answer
 * (spec/messages-and-artifacts.md#conversation). Chat clients keep a conversation and send it with each message. The ids of
 * these tasks name none that can be read.
 */
export function statedConversation(task: Task): Task[] {
  const [first] = task.history
  const conversation = first?.metadata?.['conversation']
  // Most messages state none, and zod creates an error for an absent value.
  if (conversation === undefined) return []
  const { data: messages = [] } = stated.safeParse(conversation)
  const turns: Task[] = []
  let said: Message[] = []
  for (const [index, { role, text }] of messages.entries()) {
    const messageId = idOf(task.id, index)
    const { id: taskId, contextId } = task
    said.push({ role, parts: [{ kind: 'text', text }], messageId, contextId, taskId })
    const isLast = role === 'assistant' && messages[index + 1]?.role !== 'assistant'
    if (!isLast && index < messages.length - 1) continue
    turns.push(turnOf(task, said, idOf(task.id, `turn ${index}`)))
    said = []
  }
  return turns.slice(-turnsMax)
}

function turnOf(
  { contextId, status: { timestamp } }: Omit<Task, 'history'>,
  said: Message[],
  id: string,
): Task {
  const parts = said.filter(({ role }) => role === 'assistant').flatMap((message) => message.parts)
  const last = said.at(-1)
  return {
    id,
    contextId,
    status: { state: 'completed', timestamp, ...(last && { message: { ...last, role: 'agent', parts } }) },
    history: said,
    artifacts: [],
  }
}

const idOf = (taskId: string, name: string | number) =>
  uuidOfHash(hash('sha256', JSON.stringify(['stated conversation', taskId, name]), 'buffer'))
