import { z } from 'zod'
import { messageContent, partsOf, textOf } from './content.ts'
import { refused, unsupported } from './request-error.ts'
import type { EarlierMessage, Turn } from './turn.ts'

export const messagesMax = 10_000
export const modelName = z.string().min(1).max(256)
/** Key-value pairs of the client, which become metadata of the message. */
export const clientMetadata = z
  .record(z.string().max(64), z.string().max(512))
  .refine((pairs) => Object.keys(pairs).length <= 16, 'must have at most 16 keys')

const message = z.object({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']),
  content: messageContent.nullish(),
})

/** The body of `POST /v1/chat/completions`. Other fields are ignored (spec/openai.md#parameters). */
export const chatBody = z.object({
  model: modelName,
  messages: z.array(message).min(1).max(messagesMax),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.int().nullish(),
  logprobs: z.boolean().nullish(),
  modalities: z.array(z.string()).nullish(),
  audio: z.unknown().optional(),
  tool_choice: z.unknown().optional(),
  function_call: z.unknown().optional(),
  response_format: z.object({ type: z.string() }).nullish(),
  metadata: clientMetadata.nullish(),
})
export type ChatBody = z.output<typeof chatBody>

/** @throws ParleyError InvalidParams for a parameter that changes the answer in a way that agents cannot follow */
export function turnOfChat(body: ChatBody): Turn {
  refuseUnsupported(body)
  const { messages } = body
  const firstNew = messages.findLastIndex(({ role }) => role === 'assistant' || role === 'tool') + 1
  const newest = messages.slice(firstNew).filter(({ role }) => role === 'user')
  if (messages.at(-1)?.role !== 'user') {
    const param = `messages[${messages.length - 1}].role`
    throw refused(param, 'The last message must have the role user.')
  }
  const parts = newest.flatMap(({ content }) =>
    partsOf(content ?? '', `messages[${messages.length - 1}].content`),
  )
  if (parts.length === 0) throw refused('messages', 'The last message is empty.')
  const earlier = messages
    .filter((one, index) => index < firstNew || one.role !== 'user')
    .flatMap(({ role, content }) => earlierOf(role, textOf(content)))
  const isJson = body.response_format?.type === 'json_object'
  return { model: body.model, parts, earlier, isJson, metadata: { ...body.metadata } }
}

/** Messages of tools are left out, because agents have called no tools of the client. */
export function earlierOf(role: string, text: string): EarlierMessage[] {
  if (text === '') return []
  if (role === 'user' || role === 'assistant') return [{ role, text }]
  return role === 'system' || role === 'developer' ? [{ role: 'system', text }] : []
}

function refuseUnsupported(body: ChatBody): void {
  if ((body.n ?? 1) !== 1) throw unsupported('n', 'Agents give one answer: n must be 1.')
  if (body.logprobs === true) throw unsupported('logprobs', 'Agents report no log probabilities.')
  if (body.modalities?.some((one) => one !== 'text') === true || (body.audio ?? null) !== null)
    throw unsupported('modalities', 'Answers are text and files: modalities must be ["text"].')
  refuseForcedTools('tool_choice', body.tool_choice)
  refuseForcedTools('function_call', body.function_call)
  requireFormat('response_format', body.response_format?.type)
}

/** Tools of the client are ignored, unless the answer would have to call one. */
export function refuseForcedTools(param: string, choice: unknown): void {
  if (choice === undefined || choice === null || choice === 'auto' || choice === 'none') return
  throw unsupported(
    param,
    'Agents do not call the tools of the client: leave this out, or use "auto" or "none".',
  )
}

export function requireFormat(param: string, type: string | undefined): void {
  if (type === undefined || type === 'text' || type === 'json_object') return
  throw unsupported(
    param,
    'Agents do not follow a schema of the client: use the type "text" or "json_object".',
  )
}
