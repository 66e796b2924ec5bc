import { hash } from 'node:crypto'
import type { NegotiationRequest } from '@parley/negotiation/score/request'
import type { SendAnswer } from '@parley/wire/codecs/codec'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { IncomingMessage, SendMessage } from '@parley/wire/model/call'
import type { Part } from '@parley/wire/model/task'
import { uuidOfHash, uuidPattern } from '@parley/wire/model/uuid'
import { textOf } from '../negotiation/requirements.ts'
import type { Incoming, Sending } from '../placement/sending.ts'

const idMaxChars = 256
/** A longer result is read from its task only. */
const handedOnMaxChars = 100_000

/** A part of a request, and the agent that is expected to serve it. */
export interface PlannedPart {
  wanted: NegotiationRequest
  agent: string | undefined
}

/** A message that is split into parts. */
export interface Chain {
  incoming: Incoming
  sent: SendMessage
  parts: readonly PlannedPart[]
  material: string
  /** The idempotency keys and message ids of the parts are derived from these, so that a repeated request repeats its chain. */
  key: string
  /** When the last part may start, in milliseconds since 1970. */
  until: number
}

/** The first part has the material and the files; the others have the text of the result before them. */
export function messageOfPart(chain: Chain, at: number, ended: readonly SendAnswer[]): IncomingMessage {
  const { incoming, sent, parts, material, key } = chain
  const { messageName: _, referenceTaskIds, parts: all, ...message } = sent.message
  const need = parts[at]?.wanted.taskSummary ?? ''
  const last = ended.at(-1)
  const handedOn = last === undefined ? material : textOfAnswer(last)
  const files = at === 0 ? all.filter((part) => part.kind !== 'text') : []
  const tasks = ended.flatMap((one) => taskIdOf(one) ?? []).filter((id) => uuidPattern.test(id))
  const references = at === 0 ? referenceTaskIds : canGrant(incoming) ? tasks : []
  const texts = [need, ...(handedOn === '' ? [] : [handedOn])]
  return {
    ...message,
    messageId: uuidOfHash(hash('sha256', JSON.stringify([key, sent.message.messageId, at]), 'buffer')),
    parts: [...texts.map((text): Part => ({ kind: 'text', text })), ...files],
    ...(references !== undefined && references.length > 0 && { referenceTaskIds: references }),
  }
}

/** Whether the agent of a part can read the tasks before it (`ReferenceGrants`). */
function canGrant({ request }: Incoming): boolean {
  return request.token !== undefined && request.token.subject.introspection.cnf === undefined
}

/** The text of the artifacts, or of the message if there are none. Empty if it is too long. */
function textOfAnswer(one: SendAnswer): string {
  const artifacts = one.kind === 'task' ? one.task.artifacts : []
  const message = one.kind === 'task' ? one.task.status.message : one.message
  const parts =
    artifacts.length > 0 ? artifacts.flatMap((artifact) => artifact.parts) : (message?.parts ?? [])
  const text = parts.flatMap((part) => (part.kind === 'text' ? [part.text] : [])).join('\n\n')
  return text.length > handedOnMaxChars ? '' : text
}

/** The id of the task in an answer. */
export function taskIdOf(one: SendAnswer): string | undefined {
  const id = one.kind === 'task' ? one.task.id : one.message.taskId
  return id === '' ? undefined : id.slice(0, idMaxChars)
}

/** Keeps the fields of the params that only the dialect knows. */
export function paramsOfPart({ codec, params }: Incoming, part: SendMessage): Record<string, unknown> {
  const written: unknown = JSON.parse(JSON.stringify(codec.writeParams('sendMessage', part)))
  if (!isObject(written)) return params
  const configuration = isObject(written['configuration']) ? written['configuration'] : {}
  const given = isObject(params['configuration']) ? params['configuration'] : {}
  const replaced = new Set([...Object.keys(configuration), 'acceptedOutputModes'].map(camelOf))
  const kept = Object.entries(given).filter(([name]) => !replaced.has(camelOf(name)))
  return {
    ...params,
    message: written['message'],
    configuration: { ...Object.fromEntries(kept), ...configuration },
  }
}

const camelOf = (name: string) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** The body of a request with other params. */
export function bodyOf({ body, rest }: Incoming, params: Record<string, unknown>): Buffer {
  const envelope = rest === undefined ? parseJson(body) : undefined
  return Buffer.from(JSON.stringify(isObject(envelope) ? { ...envelope, params } : params))
}

/** The text of a message, or of the part of it that is sent. */
export const instructionOf = ({
  part,
  message,
}: {
  part?: Sending['part'] | undefined
  message: Sending['message']
}): string => part?.wanted.taskSummary ?? textOf(message)
