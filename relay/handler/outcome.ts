import {
  type Output,
  part as outputPart,
  pause,
  reply,
  streamedArtifact,
} from '@parley/agent/internal/author/output'
import { paymentNoticeIn } from '@parley/wire/codecs/x402'
import type { Message, Part, TaskState } from '@parley/wire/model/task'
import { InvalidAgentAnswer } from '../client/agent-errors.ts'
import { artifactName, type ForeignTask } from './foreign-task.ts'

/** The task cannot continue. The message is the reason that the caller reads. */
export class RelayedTaskFailed extends Error {
  override readonly name = 'RelayedTaskFailed'
}

const textMax = 1500
/** The maximum size of a question or of the reason for a rejection. The task keeps it several times. */
const promptMaxBytes = 1024 * 1024

/**
 * Returns the output for a task that has ended or paused at the agent. The payment metadata of its status message reaches
 * the caller.
 * @throws InvalidAgentAnswer
 */
export function* outcomeOf(task: ForeignTask): Generator<Output> {
  if (task.message !== undefined) {
    yield replyOf(task.message, task.message.parts)
    return
  }
  const state: TaskState = task.status?.state ?? 'working'
  const message = task.status?.message
  const notice = paymentNoticeIn(message?.metadata)
  const text = textOf(message?.parts ?? [])
  const fail = (reason: string) => pause('fail', [{ kind: 'text', text: reason }], notice)
  if (state === 'completed') yield* completed(task)
  else if (state === 'failed') yield fail(text === '' ? 'The agent failed.' : text)
  else if (state === 'canceled') yield fail(`The agent canceled the task${text && `: ${text}`}`)
  else if (state === 'rejected')
    yield pause('decline', promptOf(message, 'The agent rejected the task.'), notice)
  else if (state === 'auth-required')
    yield pause('auth', promptOf(message, 'The agent requires authentication.'), notice)
  // The caller pays the agent in the metadata of its next message, which the agent receives unchanged.
  else yield pause('ask', promptOf(message, 'The agent requires more input.'), notice)
}

function* completed(task: ForeignTask): Generator<Output> {
  for (const { artifact, key } of task.artifacts) {
    const { name, description, extensions, metadata, parts } = artifact
    const fields = {
      name: artifactName(name),
      ...(description !== undefined && { description }),
      ...(extensions !== undefined && { extensions }),
      ...(metadata !== undefined && { metadata }),
    }
    yield streamedArtifact(key, fields, parts)
  }
  // Some agents answer with the last message of the history instead of artifacts.
  const message = task.artifacts.length > 0 ? task.status?.message : task.lastMessage
  if (message === undefined) return
  const hasNotice = paymentNoticeIn(message.metadata) !== undefined
  const parts: Part[] =
    message.parts.length === 0 && hasNotice
      ? [{ kind: 'text', text: 'The agent has reported the payment' }]
      : message.parts
  if (parts.length > 0) yield replyOf(message, parts, true)
}

function replyOf({ metadata }: Message, parts: Part[], asTask = false): Output {
  const notice = paymentNoticeIn(metadata)
  return reply(parts.map(outputPart), { asTask: asTask || notice !== undefined, metadata: notice })
}

/** @throws InvalidAgentAnswer */
function promptOf(message: Message | undefined, fallback: string): Part[] {
  const parts = message?.parts ?? []
  if (Buffer.byteLength(JSON.stringify(parts)) > promptMaxBytes)
    throw new InvalidAgentAnswer(`A message of the agent is larger than ${promptMaxBytes} bytes`)
  return parts.length > 0 ? parts : [{ kind: 'text', text: fallback }]
}

/** Returns the texts of the parts in one line. */
function textOf(parts: readonly Part[]): string {
  const texts = parts.flatMap((part) => (part.kind === 'text' ? [part.text] : []))
  return texts.join(' ').replace(/\s+/g, ' ').trim().slice(0, textMax)
}
