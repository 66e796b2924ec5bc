import { type AgentDefinition, defineAgent, type HandlerContext, type Output } from '@parley/agent'
import { chat, maxAnswerCharacters, type Spent } from './chat-completions.ts'
import { messagesFor, refusalOf } from './conversation.ts'
import { ChatFailure } from './failure.ts'
import type { AssistantSettings } from './settings.ts'

/** Creates the chat agent for the endpoint in these settings. Its skill is in `skills/chat.md`. */
export function assistantOf(settings: AssistantSettings): AgentDefinition {
  return defineAgent({
    name: 'assistant',
    description:
      'Talks with you: answers questions, explains, writes, rewrites, translates, plans and helps with code, by a large language model. Remembers the conversation and streams its answers.',
    version: '1.0.0',
    concurrency: 16,
    deadlineMs: 600_000,
    handle: (context) => reply(context, settings),
  })
}

async function* reply(context: HandlerContext, settings: AssistantSettings): AsyncGenerator<Output, Output> {
  const { systemPrompt, historyCharacters: limit, model } = settings
  const nothingSaid = context.text.trim() === '' && Object.keys(context.data).length === 0
  if (nothingSaid && context.files.length === 0) return context.ask('What can I do for you?')
  const refusal = refusalOf(context, limit)
  if (refusal !== undefined) return context.decline(refusal)
  let spent: Spent | undefined
  let said = false
  try {
    for await (const piece of chat(settings, messagesFor(context, { systemPrompt, limit }), context.signal)) {
      if ('spent' in piece) spent = piece.spent
      else if ('text' in piece) yield piece.text
      else
        yield piece.cut === 'by-us'
          ? `\n\n[Cut after ${maxAnswerCharacters} characters.]`
          : '\n\n[Cut: the model reached its longest answer.]'
      said ||= 'text' in piece
    }
  } catch (error) {
    if (error instanceof ChatFailure) context.log.warn({ cause: causeOf(error) }, error.message)
    throw error
  } finally {
    if (spent !== undefined) context.usage({ model, ...spent })
  }
  if (!said) throw new ChatFailure('The model gave an empty answer.')
  return undefined
}

/** The error type for the log. Its message is omitted because it may contain an address. */
function causeOf({ cause }: ChatFailure): string | undefined {
  if (!(cause instanceof Error)) return undefined
  const inner = cause.cause instanceof Error ? cause.cause : cause
  return 'code' in inner ? String(inner.code) : inner.name
}
