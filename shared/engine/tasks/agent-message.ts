import { randomUUID } from 'node:crypto'
import { type ContextRef, contextOf, type Message, type Part } from '@parley/wire/model/task'
import type { TaskRecord } from '../store/store.ts'
import type { Change } from './transitions.ts'

/**
 * Creates a message from the agent about a task, such as a prompt or the reason for a failure. Its role in a
 * status is `agent`.
 */
export function agentMessage(task: { id: string } & ContextRef, parts: Part[]): Message {
  return { role: 'agent', parts, messageId: randomUUID(), ...contextOf(task), taskId: task.id }
}

export function agentText(task: { id: string } & ContextRef, text: string): Message {
  return agentMessage(task, [{ kind: 'text', text }])
}

export function failed(record: TaskRecord, reason: string): Extract<Change, { kind: 'fail' }> {
  return { kind: 'fail', message: agentText(record, reason) }
}
