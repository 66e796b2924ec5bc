import { z } from 'zod'
import {
  clientMetadata,
  earlierOf,
  messagesMax,
  modelName,
  refuseForcedTools,
  requireFormat,
} from './chat-request.ts'
import { messageContent, partsOf, textOf } from './content.ts'
import { refused, unsupported } from './request-error.ts'
import type { EarlierMessage, Turn } from './turn.ts'

const message = z.object({
  type: z.literal('message').nullish(),
  role: z.enum(['system', 'developer', 'user', 'assistant']),
  content: messageContent,
})
/** Items of earlier responses, such as images, are ignored: their texts are in messages. */
const otherItem = z.object({ type: z.string().refine((type) => type !== 'message') })
const item = z.union([message, otherItem])

const conversationName = z.string().min(1).max(256)

/** The body of `POST /v1/responses`. Other fields are ignored (spec/openai.md#parameters). */
export const responseBody = z.object({
  model: modelName.default('auto'),
  input: z.union([z.string(), z.array(item).min(1).max(messagesMax)]),
  instructions: z.string().nullish(),
  stream: z.boolean().nullish(),
  background: z.boolean().nullish(),
  previous_response_id: z.string().max(100).nullish(),
  conversation: z.union([conversationName, z.object({ id: conversationName })]).nullish(),
  include: z.array(z.string()).nullish(),
  prompt: z.unknown().optional(),
  tool_choice: z.unknown().optional(),
  text: z.object({ format: z.object({ type: z.string() }).nullish() }).nullish(),
  metadata: clientMetadata.nullish(),
})
export type ResponseBody = z.output<typeof responseBody>

/** @throws ParleyError InvalidParams for a parameter that changes the answer in a way that agents cannot follow */
export function turnOfResponse(body: ResponseBody): Turn {
  refuseUnsupported(body)
  const { input, instructions, model } = body
  const isJson = body.text?.format?.type === 'json_object'
  const shared = { model, isJson, metadata: { ...body.metadata } }
  const system: EarlierMessage[] =
    typeof instructions === 'string' && instructions !== '' ? [{ role: 'system', text: instructions }] : []
  if (typeof input === 'string') {
    if (input === '') throw refused('input', 'The input is empty.')
    return { ...shared, parts: [{ kind: 'text', text: input }], earlier: system }
  }
  const messages = input.flatMap((one) => ('role' in one ? [one] : []))
  const firstNew = messages.findLastIndex(({ role }) => role === 'assistant') + 1
  const parts = messages
    .slice(firstNew)
    .flatMap(({ role, content }, index) =>
      role === 'user' ? partsOf(content, `input[${firstNew + index}].content`) : [],
    )
  if (parts.length === 0) throw refused('input', 'The last message of the input must have the role user.')
  const earlier = messages
    .filter((one, index) => index < firstNew || one.role !== 'user')
    .flatMap(({ role, content }) => earlierOf(role, textOf(content)))
  return { ...shared, parts, earlier: [...system, ...earlier] }
}

/** Returns the name of the conversation. */
export function conversationIn({
  conversation,
  previous_response_id: previous,
}: ResponseBody): string | undefined {
  const name = typeof conversation === 'string' ? conversation : conversation?.id
  if (name !== undefined && typeof previous === 'string')
    throw refused(
      'conversation',
      'Send either conversation or previous_response_id.',
      'mutually_exclusive_parameters',
    )
  return name
}

function refuseUnsupported(body: ResponseBody): void {
  if ((body.prompt ?? null) !== null)
    throw unsupported('prompt', 'Stored prompts are not supported: send input.')
  if (body.include?.includes('message.output_text.logprobs') === true)
    throw unsupported('include', 'Agents report no log probabilities.')
  if (body.background === true && body.stream === true)
    throw unsupported('background', 'A response in the background is not streamed: read it with GET.')
  refuseForcedTools('tool_choice', body.tool_choice)
  requireFormat('text.format', body.text?.format?.type)
}
