import type { Calls, ContextSummary, EventPage, Page } from '../../model/call.ts'
import type { Operation } from '../../model/operation.ts'
import type { WireResult } from '../codec.ts'
import { cardOut } from './card.ts'
import { eventOut } from './events.ts'
import { pushConfigOut } from './push-config.ts'
import type { Unserialized, WireEventPage } from './shapes.ts'
import { taskOut } from './task.ts'

const writers: { [O in Operation]: (result: Calls[O]['result']) => unknown } = {
  sendMessage: taskOut,
  streamMessage: streams,
  getTask: taskOut,
  listTasks: ({ items }) => items.map((task) => ({ ...taskOut(task), created_at: task.createdAt })),
  cancelTask: taskOut,
  giveFeedback: ({ taskId }) => ({ success: true, task_id: taskId, message: 'Feedback was recorded' }),
  listTaskEvents: eventPageOut,
  resubscribe: streams,
  setPushConfig: pushConfigOut,
  getPushConfig: pushConfigOut,
  listPushConfigs: (configs) => configs.map(pushConfigOut),
  deletePushConfig: pushConfigOut,
  listContexts: ({ items }) => items.map(contextOut),
  clearContext: ({ contextId }) => ({ success: true, context_id: contextId, message: 'Context was cleared' }),
  getExtendedCard: cardOut,
}

const headers: { [O in Operation]?: (result: Calls[O]['result']) => Record<string, string> | undefined } = {
  listTasks: cursorHeader,
  listContexts: cursorHeader,
}

export function writeResult<O extends Operation>(operation: O, result: Calls[O]['result']): WireResult {
  return { json: writers[operation](result), headers: headers[operation]?.(result) }
}

/** The cursor of the next page is a header, because the result of a list is an array (spec/methods.md#taskslist). */
function cursorHeader({ nextCursor }: Page<unknown>): Record<string, string> | undefined {
  return nextCursor === undefined ? undefined : { 'x-next-cursor': nextCursor }
}

function streams(): never {
  throw new Error('A stream has no result')
}

function eventPageOut({ taskId, events, lastSequence, more }: EventPage): Unserialized<WireEventPage> {
  return { task_id: taskId, events: events.map(eventOut), last_sequence: lastSequence, more }
}

function contextOut(context: ContextSummary) {
  return {
    context_id: context.id,
    kind: 'context',
    role: 'user',
    created_at: context.createdAt,
    updated_at: context.updatedAt,
    status: context.busy ? 'active' : 'idle',
    task_count: context.taskCount,
    task_ids: context.taskIds,
    tasks: context.taskIds,
  }
}
