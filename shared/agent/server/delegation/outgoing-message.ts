import { createHmac } from 'node:crypto'
import { withAncestors, withSkillId } from '@parley/wire/codecs/parley/metadata'
import type { OutgoingMessage } from '@parley/wire/codecs/parley/shapes'
import { taskIdOfKey } from '@parley/wire/model/chosen-task-id'
import type { Part } from '@parley/wire/model/task'
import { uuidOfHash } from '@parley/wire/model/uuid'
import type { CallContent, CallMessage, CallOptions } from '../../author/agents.ts'
import { isFile } from '../../author/output.ts'

/** The parts of a message, as the author gave it. @throws TypeError for a message without content */
export function partsOf(message: CallMessage): Part[] {
  const {
    text,
    data,
    files = [],
    parts = [],
  }: CallContent = typeof message === 'string' ? { text: message } : message
  const all: Part[] = []
  if (text !== undefined) all.push({ kind: 'text', text })
  if (data !== undefined) all.push({ kind: 'data', data })
  for (const one of files) {
    if (isFile(one)) all.push({ kind: 'file', file: one.file })
    else {
      const { name, mimeType, bytes } = one
      const named = { ...(name !== undefined && { name }), ...(mimeType !== undefined && { mimeType }) }
      all.push({ kind: 'file', file: { ...named, bytes: bytes.toString('base64') } })
    }
  }
  all.push(...parts)
  if (all.length === 0) throw new TypeError('A message to an agent needs a text, data, files or parts.')
  return all
}

export interface CallIds {
  /** The `Idempotency-Key`, which identifies the call within the task. */
  key: string
  /** The ID that the new task gets at the named agent, or at the one that the gateway chooses. */
  taskId: string
  messageId: string
}

/**
 * Returns the IDs of a call. They depend on the task, its number of messages, the call and the number of equal calls
 * before it, so that a handler that runs again makes the same calls. Other parties cannot guess them.
 * @param secret a secret of the agent
 */
export function callIds(secret: Uint8Array, ...call: unknown[]): CallIds {
  const digest = (name: string, text: string) =>
    createHmac('sha256', secret).update(`${name} ${text}`).digest()
  const key = digest('call', JSON.stringify(call)).toString('base64url')
  return { key, taskId: taskIdOfKey(key), messageId: uuidOfHash(digest('message', key)) }
}

/** Returns the message of a call without its own IDs. */
export function messageOf(
  message: CallMessage,
  { taskId, contextId }: Pick<CallOptions, 'taskId' | 'contextId'>,
  ancestors: { parentTaskId: string; rootTaskId: string },
): OutgoingMessage & { kind: 'message' } {
  const skillId = typeof message === 'string' ? undefined : message.skillId
  return {
    role: 'user',
    kind: 'message',
    parts: partsOf(message),
    metadata: { ...withAncestors(ancestors), ...(skillId !== undefined && withSkillId(skillId)) },
    ...(taskId !== undefined && { taskId }),
    ...(contextId !== undefined && { contextId }),
  }
}
