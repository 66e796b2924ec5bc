import { readParts, readTaskOutput } from '@parley/wire/codecs/parley/answers'
import { isDelta, positionOf } from '@parley/wire/codecs/parley/events'
import type { WireArtifactUpdate, WireStatusUpdate } from '@parley/wire/codecs/parley/shapes'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import type { Artifact, Part, Task } from '@parley/wire/model/task'
import type { CallEvent, CallResult } from '../../author/agents.ts'
import { dataOf, filesOf, textOf } from '../../author/build-context.ts'

/** What an agent answered: a task, or a message instead of one. */
export type Answer = { task: Task; prompt: Part[] } | { message: Part[] }

/** Reads the result of `message/send` or `tasks/get`. Undefined if it is neither a task nor a message. */
export function readAnswer(json: unknown): Answer | undefined {
  if (!isObject(json)) return undefined
  if (json['kind'] === 'message') return { message: readParts(json['parts']) }
  const task = readTaskOutput(json)
  return task && { task, prompt: promptIn(json['status']) }
}

/** Returns the parts of the message of a status: a prompt or a reason. */
function promptIn(status: unknown): Part[] {
  const message = isObject(status) ? status['message'] : undefined
  return isObject(message) ? readParts(message['parts']) : []
}

export function resultOf(agent: string, answer: Answer): CallResult {
  const artifacts: Artifact[] = 'task' in answer ? answer.task.artifacts : []
  // A task may be completed with a message instead of artifacts.
  const message = 'task' in answer ? answer.prompt : answer.message
  const parts = artifacts.length > 0 ? artifacts.flatMap((artifact) => artifact.parts) : message
  const task = 'task' in answer ? answer.task : undefined
  return {
    agent,
    taskId: task?.id,
    contextId: task?.contextId,
    state: 'completed',
    parts,
    text: textOf(parts),
    data: dataOf(parts),
    files: filesOf(parts),
    artifacts,
  }
}

export function artifactEvent(taskId: string, { name, parts }: Pick<Artifact, 'name' | 'parts'>): CallEvent {
  return { kind: 'artifact', taskId, name, text: textOf(parts), parts, files: filesOf(parts) }
}

/** Returns the event for an agent that answered with a message; undefined for one that made artifacts. */
export function replyEvent({
  taskId = '',
  artifacts,
  parts,
  text,
  files,
}: CallResult): CallEvent | undefined {
  if (artifacts.length > 0 || parts.length === 0) return undefined
  return { kind: 'reply', taskId, text, parts, files }
}

/** Reads a change of state or a progress message. */
export function statusUpdate(event: WireStatusUpdate): CallEvent {
  const { taskId } = positionOf(event)
  const { state, message } = event.status
  if (state !== 'working' || message === undefined) return { kind: 'state', taskId, state }
  const parts = readParts(message.parts)
  return { kind: 'progress', taskId, text: textOf(parts), parts }
}

/** Reads a finished artifact or a delta. */
export function artifactUpdate(event: WireArtifactUpdate): CallEvent {
  const { taskId } = positionOf(event)
  const parts = readParts(event.artifact.parts)
  if (isDelta(event)) return { kind: 'delta', taskId, text: textOf(parts), parts }
  return artifactEvent(taskId, { name: event.artifact.name, parts })
}
