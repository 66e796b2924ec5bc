import { randomUUID } from 'node:crypto'
import { awaitedPayment } from '@parley/engine/payments/x402/payment-refused'
import type { TaskRecord } from '@parley/engine/store/store'
import { agentMessage, failed } from '@parley/engine/tasks/agent-message'
import { pauseMaxMs } from '@parley/engine/tasks/expiry'
import type { Change } from '@parley/engine/tasks/transitions'
import type { KeyPair } from '@parley/kit/did/keys'
import { signPart } from '@parley/kit/did/part-signature'
import { type TokenUsage, withUsage } from '@parley/wire/codecs/parley/metadata'
import { errorTable, ParleyError } from '@parley/wire/errors'
import type { Artifact, JsonObject, Message, Part, PausedState } from '@parley/wire/model/task'
import {
  type CollectedOutput,
  MalformedOutputError,
  OutputTooLargeError,
} from '../../author/collect-output.ts'
import { mainArtifact, type Pause } from '../../author/output.ts'
import type { PaymentPrompt, PaymentRequest } from './payment-prompt.ts'

const reasonMax = 2000

const pausedStateOf: Record<'ask' | 'auth' | 'payment' | 'bid', PausedState> = {
  ask: 'input-required',
  auth: 'auth-required',
  payment: 'payment-required',
  bid: 'negotiation-bid-submitted',
}

/**
 * Returns the task change for the handler's output. `artifactIds` are the IDs that deltas have used, by key;
 * `key` signs every part.
 */
export function changeOfOutput(
  record: TaskRecord,
  collected: CollectedOutput,
  run: {
    artifactIds: ReadonlyMap<string, string>
    workedMs: number
    key: KeyPair
    /** Makes the request for a payment; absent for agents without a price. */
    prompt?: ((record: TaskRecord, request: PaymentRequest) => PaymentPrompt) | undefined
    /** The tokens that the run has used, if the handler reported them. */
    usage?: TokenUsage | undefined
  },
): Change {
  if (collected.pause !== undefined) return changeOfPause(record, collected.pause, run)
  const { reply } = collected
  const signed = (parts: readonly Part[]) => parts.map((part) => signPart(part, run.key))
  const artifacts = collected.artifacts.map(({ parts, streamed, ...fields }, i): Artifact => {
    const isMain = i === 0 && reply === undefined && fields.name === mainArtifact.name
    const streamedId = run.artifactIds.get(streamed ?? (isMain ? mainArtifact.key : ''))
    return { artifactId: streamedId ?? randomUUID(), ...fields, parts: signed(parts) }
  })
  if (reply !== undefined) {
    const message = withMetadata(agentMessage(record, signed(reply.parts)), reply.metadata, run.usage)
    const isWhole = artifacts.length === 0 && !reply.asTask
    return {
      kind: 'complete',
      artifacts,
      message,
      workedMs: run.workedMs,
      reply: isWhole ? 'message' : 'task',
    }
  }
  const texts = artifacts.flatMap((artifact) => artifact.parts).filter((part) => part.kind === 'text')
  const message =
    texts.length > 0 ? withMetadata(agentMessage(record, texts), undefined, run.usage) : undefined
  return { kind: 'complete', artifacts, message, workedMs: run.workedMs }
}

type Run = Pick<Parameters<typeof changeOfOutput>[2], 'workedMs' | 'prompt' | 'usage'>

function changeOfPause(record: TaskRecord, pause: Pause, { workedMs, prompt, usage }: Run): Change {
  const message = withMetadata(agentMessage(record, pause.parts), pause.metadata, usage)
  if (pause.kind === 'decline') return { kind: 'reject', message }
  if (pause.kind === 'fail') return { kind: 'fail', message }
  const paused = {
    kind: 'pause',
    state: pausedStateOf[pause.kind],
    dueAt: Math.min(Date.now() + pauseMaxMs, record.deadlineAt ?? Number.POSITIVE_INFINITY),
    workedMs,
  } as const
  if (pause.kind !== 'payment') return { ...paused, message }
  if (prompt === undefined)
    return failed(record, 'The agent requested a payment, but its definition has no executionCost.')
  const request = paymentRequestOf(pause.parts)
  const { part, required } = prompt(record, request)
  const priced = agentMessage(record, [...pause.parts.slice(0, -1), part])
  return { ...paused, message: priced, asked: request, payment: awaitedPayment(required) }
}

function withMetadata(
  message: Message,
  given: JsonObject | undefined,
  usage: TokenUsage | undefined,
): Message {
  const metadata = { ...given, ...(usage && withUsage(usage)) }
  return Object.keys(metadata).length === 0 ? message : { ...message, metadata }
}

/** @throws MalformedOutputError */
function paymentRequestOf(parts: readonly Part[]): PaymentRequest {
  const last = parts.at(-1)
  const { amount, reason } = last?.kind === 'data' ? last.data : {}
  if (typeof amount === 'string' && typeof reason === 'string') return { amount, reason }
  throw new MalformedOutputError('requirePayment requires an amount and a reason, both strings')
}

/** Returns the task change after the handler threw. The message contains no stack trace, path or driver message. */
export function changeOfError(record: TaskRecord, error: unknown): Change {
  if (error instanceof MalformedOutputError) {
    const code = errorTable.InvalidAgentResponse.code
    const data: Part = { kind: 'data', data: { code, message: error.message } }
    return {
      kind: 'fail',
      message: agentMessage(record, [
        { kind: 'text', text: `Invalid agent response: ${error.message}` },
        data,
      ]),
    }
  }
  if (error instanceof OutputTooLargeError) return failed(record, `The task failed: ${error.message}`)
  return failed(record, reasonOf(error))
}

/** Returns the first line of the author's message. System and library errors may contain paths, so only the log has them. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error) || error.message === '') return 'The agent failed.'
  // Errors from the system, Node.js and libraries have a code.
  if ('code' in error && typeof error.code === 'string') return 'The agent failed.'
  return (error.message.split('\n', 1)[0] ?? '').slice(0, reasonMax)
}

/** Whether the store refuses the output because of its size, so that a retry cannot succeed. */
export function isTooLarge(error: unknown): error is ParleyError {
  return error instanceof ParleyError && error.data['reason'] === 'too_large'
}
