import { withPaymentSession } from '@parley/wire/codecs/parley/metadata'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import type { JsonObject, JsonValue, Part } from '@parley/wire/model/task'
import { z } from 'zod'
import type { AgentMessage, CallerCalls } from '../calls/agent-calls.ts'
import { artifactAddressIn, partAt } from './artifact-resources.ts'
import { payingParts } from './payments.ts'
import type { SkillTool } from './tool-catalog.ts'

const id = z.string().min(1).max(256)

const file = z
  .strictObject({
    name: z.string().max(256).optional(),
    mime_type: z.string().max(128).optional(),
    data: z.base64().optional(),
    text: z.string().optional(),
    uri: z.string().max(2048).optional(),
  })
  .refine(
    ({ data, text, uri }) => [data, text, uri].filter((one) => one !== undefined).length === 1,
    'must have exactly one of data, text and uri',
  )
const files = z.array(file).max(16).default([])

const textArguments = z.strictObject({
  text: z.string().default(''),
  files,
  context_id: id.optional(),
  task_id: id.optional(),
  payment_session: id.optional(),
})
const answerArguments = z.strictObject({
  task_id: id,
  text: z.string().optional(),
  data: z.record(z.string(), z.json()).optional(),
  payment_session: id.optional(),
})
const additions = z.looseObject({
  parley_files: files,
  parley_context_id: id.optional(),
  parley_payment_session: id.optional(),
})

type File = z.output<typeof file>

/** The routes of agents accept no larger message. */
const messageMaxChars = 10 * 1024 * 1024

/** The message of a tool call. Its files may still name results of earlier tasks. */
export interface ToolMessage {
  parts: Part[]
  files: readonly File[]
  contextId?: string | undefined
  /** The paused task that the message answers. */
  taskId?: string | undefined
  /** The payment session that pays for the message. */
  paymentSession?: string | undefined
}

/**
 * Reads the arguments of the tool of a skill, which the agent checks against its schema.
 * @throws ParleyError InvalidParams
 */
export function readSkillArguments(
  { isStructured }: Pick<SkillTool, 'isStructured'>,
  args: JsonObject,
): ToolMessage {
  if (!isStructured) return readTextArguments(args)
  const { parley_files, parley_context_id, parley_payment_session, ...data } = parseParams(additions, args)
  return {
    parts: [{ kind: 'data', data: data as JsonObject }],
    files: parley_files,
    contextId: parley_context_id,
    paymentSession: parley_payment_session,
  }
}

/** @throws ParleyError InvalidParams */
export function readTextArguments(args: JsonObject): ToolMessage {
  const { text, files: given, context_id, task_id, payment_session } = parseParams(textArguments, args)
  if (text === '' && given.length === 0)
    throw new ParleyError('InvalidParams', { message: 'text: must not be empty unless there are files' })
  return {
    parts: text === '' ? [] : [{ kind: 'text', text }],
    files: given,
    contextId: context_id,
    taskId: task_id,
    paymentSession: payment_session,
  }
}

/** @throws ParleyError InvalidParams */
export function readAnswer(args: JsonObject): ToolMessage {
  const { task_id: taskId, text, data, payment_session: paymentSession } = parseParams(answerArguments, args)
  const parts: Part[] = [
    ...(text === undefined ? [] : [{ kind: 'text' as const, text }]),
    ...(data === undefined ? [] : [{ kind: 'data' as const, data }]),
  ]
  if (parts.length === 0 && paymentSession === undefined)
    throw new ParleyError('InvalidParams', { message: 'text or data is required' })
  return { parts: parts.length === 0 ? payingParts : parts, files: [], taskId, paymentSession }
}

/**
 * Returns the message for the agent, with the files of earlier results in it.
 * @throws ParleyError NotFound if a file is not the caller's, InvalidParams
 */
export async function completedMessage(
  { parts, files: given, contextId, taskId, paymentSession }: ToolMessage,
  calls: Pick<CallerCalls, 'getTask'>,
  metadata: JsonObject,
): Promise<AgentMessage['message']> {
  const all = { ...metadata, ...(paymentSession !== undefined && withPaymentSession(paymentSession)) }
  return {
    parts: [...parts, ...(await partsOfFiles(given, calls))],
    ...(contextId !== undefined && { contextId }),
    ...(taskId !== undefined && { taskId }),
    ...(Object.keys(all).length > 0 && { metadata: all }),
  }
}

/** Reads the files one after the other, because each earlier result may be large. */
async function partsOfFiles(given: readonly File[], calls: Pick<CallerCalls, 'getTask'>): Promise<Part[]> {
  const parts: Part[] = []
  let chars = 0
  for (const one of given) {
    const part = await partOfFile(one, calls)
    chars += JSON.stringify(part).length
    if (chars > messageMaxChars)
      throw new ParleyError('InvalidParams', {
        message: 'files: they are larger than a message may be: send fewer or smaller files',
        data: { reason: 'files_too_large' },
      })
    parts.push(part)
  }
  return parts
}

async function partOfFile(
  { name, mime_type: mimeType, data, text, uri }: File,
  calls: Pick<CallerCalls, 'getTask'>,
): Promise<Part> {
  const facts = { ...(name !== undefined && { name }), ...(mimeType !== undefined && { mimeType }) }
  const bytes = data ?? (text === undefined ? undefined : Buffer.from(text).toString('base64'))
  if (bytes !== undefined) return { kind: 'file', file: { ...facts, bytes } }
  if (uri?.startsWith('parley:') === true) return earlierPart(uri, facts, calls)
  if (uri === undefined || !/^https?:\/\//i.test(uri))
    throw new ParleyError('InvalidParams', {
      message: 'files: uri must be an http or https address, or parley://tasks/… of an earlier result',
    })
  return { kind: 'file', file: { ...facts, uri } }
}

async function earlierPart(
  uri: string,
  facts: { name?: string; mimeType?: string },
  calls: Pick<CallerCalls, 'getTask'>,
): Promise<Part> {
  const address = artifactAddressIn(uri)
  const part =
    address && partAt(await calls.getTask({ taskId: address.taskId, agent: address.agent }), address)
  if (part === undefined)
    throw new ParleyError('NotFound', {
      message: `files: there is no result ${uri}`,
      data: { reason: 'file' },
    })
  if (part.kind !== 'file') return part
  return { kind: 'file', file: { ...part.file, ...facts } }
}

/** The metadata of messages that select a skill or carry a payment (spec/payments.md#x402-over-a2a). */
export function messageMetadata(skillId: string | undefined, payment: unknown): JsonObject {
  return {
    ...(skillId !== undefined && { skill_id: skillId }),
    ...(payment !== undefined && {
      'x402.payment.status': 'payment-submitted',
      'x402.payment.payload': payment as JsonValue,
    }),
  }
}
