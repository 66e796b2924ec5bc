import type { JsonObject, Part } from '@parley/wire/model/task'

/** The message that a request has for an agent, in either API. */
export interface Turn {
  /** The value of `model`. */
  model: string
  /** The content of the newest user messages. */
  parts: Part[]
  /** The messages before them, oldest first. */
  earlier: EarlierMessage[]
  /** Whether the answer has to be JSON. */
  isJson: boolean
  metadata: JsonObject
}

/** A message of the conversation as the client states it. Files are not repeated. */
export interface EarlierMessage {
  role: 'user' | 'assistant' | 'system'
  text: string
}

/** The `model` with which the gateway chooses the agent. */
export const negotiatedModel = 'auto'

/** The newest messages that reach the agent: their number, and the characters of their texts. */
const earlierMax = 200
const earlierMaxChars = 64 * 1024

/**
 * Returns the newest of the earlier messages for the metadata of a message. The SDK shows them to handlers as earlier tasks of
 * the context (spec/openai.md#history).
 */
export function conversationOf(earlier: readonly EarlierMessage[]): JsonObject {
  const kept: EarlierMessage[] = []
  let chars = 0
  for (const { role, text } of earlier.toReversed()) {
    chars += text.length
    if (kept.length === earlierMax || chars > earlierMaxChars) break
    kept.push({ role, text })
  }
  return kept.length === 0 ? {} : { conversation: kept.reverse().map((message) => ({ ...message })) }
}

/** Returns the text of the assistant's message before the newest user messages. */
export function lastAnswerIn({ earlier }: Pick<Turn, 'earlier'>): string | undefined {
  return earlier.findLast(({ role }) => role !== 'system')?.role === 'assistant'
    ? earlier.findLast(({ role }) => role === 'assistant')?.text
    : undefined
}
