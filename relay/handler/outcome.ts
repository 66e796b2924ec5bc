import type { HandlerContext } from '@parley/agent/internal/author/context'
import {
  type Output,
  part as outputPart,
  pause,
  streamedArtifact,
} from '@parley/agent/internal/author/output'
import { paymentNoticeIn } from '@parley/wire/codecs/x402'
import type { Artifact, Part, TaskState } from '@parley/wire/model/task'
import type { ForeignTask } from './foreign-task.ts'

/** The task cannot continue. The message is the reason that the caller reads. */
export class RelayedTaskFailed extends Error {
  override readonly name = 'RelayedTaskFailed'
}

const textMax = 1500

/**
 * Returns the output for a task that has ended or paused at the agent.
 * @throws RelayedTaskFailed when it has failed or was canceled there
 */
export function* outcomeOf(task: ForeignTask, { reply }: Pick<HandlerContext, 'reply'>): Generator<Output> {
  if (task.message !== undefined) {
    yield reply(task.message.parts.map(outputPart))
    return
  }
  const state: TaskState = task.status?.state ?? 'working'
  const prompt = task.status?.message?.parts ?? []
  const text = textOf(prompt)
  if (state === 'failed') throw new RelayedTaskFailed(text === '' ? 'The agent failed.' : text)
  if (state === 'canceled') throw new RelayedTaskFailed(`The agent canceled the task${text && `: ${text}`}`)
  if (state === 'rejected') yield pause('decline', promptOr(prompt, 'The agent rejected the task.'))
  else if (state === 'auth-required')
    yield pause('auth', promptOr(prompt, 'The agent requires authentication.'))
  else if (state === 'completed') yield* completed(task, reply)
  else {
    // The caller pays the agent in the metadata of its next message, which the agent receives unchanged.
    const payment = paymentNoticeIn(task.status?.message?.metadata)
    yield pause('ask', promptOr(prompt, 'The agent requires more input.'), payment)
  }
}

function* completed(task: ForeignTask, reply: HandlerContext['reply']): Generator<Output> {
  for (const artifact of task.artifacts) yield outputOf(artifact)
  // Some agents answer with the last message of the history instead of artifacts.
  const message = task.artifacts.length > 0 ? task.status?.message : task.lastMessage
  if (message !== undefined && message.parts.length > 0)
    yield reply(message.parts.map(outputPart), { asTask: true })
}

function outputOf({ name, description, extensions, metadata, parts }: Artifact): Output {
  return streamedArtifact(
    {
      name: name === '' ? 'result' : name,
      ...(description !== undefined && { description }),
      ...(extensions !== undefined && { extensions }),
      ...(metadata !== undefined && { metadata }),
    },
    parts,
  )
}

function promptOr(parts: Part[], fallback: string): Part[] {
  return parts.length > 0 ? parts : [{ kind: 'text', text: fallback }]
}

/** Returns the texts of the parts in one line. */
function textOf(parts: readonly Part[]): string {
  const texts = parts.flatMap((part) => (part.kind === 'text' ? [part.text] : []))
  return texts.join(' ').replace(/\s+/g, ' ').trim().slice(0, textMax)
}
