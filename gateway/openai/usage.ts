import { type TokenUsage, usageIn } from '@parley/wire/codecs/parley/metadata'
import type { Task } from '@parley/wire/model/task'
import { isCallers } from './task-answer.ts'

/** Most agents report no tokens. Then all counts are 0: an estimate would look like a measurement (spec/openai.md#usage). */
const none: TokenUsage = { inputTokens: 0, outputTokens: 0 }

/** Returns the tokens that the agent reports for its newest answer. */
function usageOf({ history, status }: Task): TokenUsage {
  const newest = history.at(-1)
  const answer = newest === undefined || isCallers(newest) ? undefined : newest
  return usageIn(status.message?.metadata) ?? usageIn(answer?.metadata) ?? none
}

export function chatUsage(task: Task) {
  const { inputTokens, outputTokens } = usageOf(task)
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
  }
}

export function responseUsage(task: Task) {
  const { inputTokens, outputTokens } = usageOf(task)
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: inputTokens + outputTokens,
  }
}
