import { z } from 'zod'
import { uuid } from './message.ts'

/** The keys of `message.metadata` that Parley interprets. Messages are stored with their metadata unchanged. */

type Metadata = Record<string, unknown> | undefined

/** The skill that the message is for. */
export function skillIdIn(metadata: Metadata): unknown {
  return metadata?.['skill_id'] ?? metadata?.['skillId']
}

export function withSkillId(skillId: string) {
  return { skill_id: skillId }
}

/** The path of the skill ID in an error's list of issues. */
export const skillIdPath = 'message.metadata.skill_id'

/** The payment session that pays for the message. */
export function paymentSessionIdIn(metadata: Metadata): unknown {
  return metadata?.['payment_session_id'] ?? metadata?.['paymentSessionId']
}

export function withPaymentSession(sessionId: string) {
  return { payment_session_id: sessionId }
}

/** The tokens of language models that a run of a handler has used. */
export interface TokenUsage {
  inputTokens: number
  outputTokens: number
}

/** Writes the usage into the metadata of the message with which the run ended (spec/messages-and-artifacts.md#usage). */
export function withUsage({ inputTokens, outputTokens }: TokenUsage) {
  return { usage: { input_tokens: inputTokens, output_tokens: outputTokens } }
}

const tokens = z.int().min(0)
const usage = z.object({ usage: z.object({ input_tokens: tokens, output_tokens: tokens }) })

/** Reads the usage that an agent states; undefined if it states none. */
export function usageIn(metadata: Metadata): TokenUsage | undefined {
  const { data } = usage.safeParse(metadata)
  return data && { inputTokens: data.usage.input_tokens, outputTokens: data.usage.output_tokens }
}

/** The calling agent's task and the first task of the chain. Values other than UUIDs count as absent. */
export function ancestorsIn(metadata: Metadata): { parentTaskId?: string; rootTaskId?: string } {
  const stated = metadata?.['parent_task_id']
  // Most messages state none, and zod creates an error for an absent value.
  const parentTaskId = stated === undefined ? undefined : uuid.safeParse(stated).data
  if (parentTaskId === undefined) return {}
  return { parentTaskId, rootTaskId: uuid.safeParse(metadata?.['root_task_id']).data ?? parentTaskId }
}

/** The state of a bid in messages of A2A. */
export const bidStatusKey = 'parley.negotiation.status'

/** Whether the message accepts a bid; undefined if its metadata contains no answer. */
export function bidAnswerIn(metadata: Metadata): boolean | undefined {
  const answer = metadata?.[bidStatusKey]
  return answer === 'bid-accepted' ? true : answer === 'bid-rejected' ? false : undefined
}

export function withAncestors({ parentTaskId, rootTaskId }: { parentTaskId: string; rootTaskId: string }) {
  return { parent_task_id: parentTaskId, root_task_id: rootTaskId }
}
