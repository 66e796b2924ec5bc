import type { HandlerContext } from '@parley/agent'

export interface ChatMessage {
  role: 'system' | 'user' | 'assistant'
  content: string
}

type Given = Pick<HandlerContext, 'history' | 'references' | 'files' | 'context'>
type Message = HandlerContext['history'][number]
type File = HandlerContext['files'][number]

/**
 * Builds the model's input: the system prompt, the newest part of the conversation that fits in `limit` characters,
 * referenced results, and the message. Only the operator sets the system prompt, so a caller's message with the role
 * `system` counts as a user message.
 */
export function messagesFor(
  given: Given,
  { systemPrompt, limit }: { systemPrompt: string; limit: number },
): ChatMessage[] {
  const newest = [...attachments(given), ...given.history.flatMap(chatMessage)]
  const earlier = given.context.history
    .filter(({ state }) => state === 'completed')
    .flatMap(({ history }) => history.flatMap(chatMessage))
  let left = limit - sizeOf(newest)
  const remembered: ChatMessage[] = []
  for (const message of earlier.toReversed()) {
    left -= message.content.length
    if (left < 0) break
    remembered.unshift(message)
  }
  // Do not start with an answer whose question was cut off.
  while (remembered[0]?.role === 'assistant') remembered.shift()
  const system: ChatMessage[] = systemPrompt === '' ? [] : [{ role: 'system', content: systemPrompt }]
  return [...system, ...remembered, ...newest]
}

/** The reason why the message cannot be sent to the model, or undefined if it can. */
export function refusalOf(given: Given, limit: number): string | undefined {
  const unreadable = given.files.find((file) => !isText(file))
  if (unreadable !== undefined) return `I read text files; ${unreadable.name ?? 'the file'} is none.`
  const size = sizeOf([...attachments(given), ...given.history.flatMap(chatMessage)])
  return size > limit ? `The message is too long: ${size} characters, and ${limit} fit.` : undefined
}

function attachments({ files, references }: Given): ChatMessage[] {
  const texts = [
    ...references.map((reference) => ({ title: 'Result of an earlier task', text: reference.text })),
    ...files.map((file) => ({ title: `File ${file.name ?? 'without a name'}`, text: file.text })),
  ]
  return texts
    .filter(({ text }) => text.trim() !== '')
    .map(({ title, text }) => ({ role: 'user', content: `${title}:\n\n${text}` }))
}

function chatMessage({ role, parts }: Message): ChatMessage[] {
  const texts = parts.map((part) => {
    if (part.kind === 'text') return part.text
    return part.kind === 'data' ? JSON.stringify(part.data) : ''
  })
  const content = texts.filter((text) => text.trim() !== '').join('\n')
  if (content === '') return []
  return [{ role: role === 'assistant' || role === 'agent' ? 'assistant' : 'user', content }]
}

const sizeOf = (messages: ChatMessage[]): number =>
  messages.reduce((sum, { content }) => sum + content.length, 0)

function isText({ mimeType, bytes }: File): boolean {
  const type = mimeType?.split(';')[0]?.trim().toLowerCase() ?? 'text/plain'
  const textual = /^text\/|^application\/(?:json|xml|yaml|toml|octet-stream|.+\+(?:json|xml))$/.test(type)
  return textual && !bytes.subarray(0, 4096).includes(0)
}
