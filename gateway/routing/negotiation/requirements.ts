import { type NegotiationRequest, parseNegotiation } from '@parley/negotiation/score/request'
import { defaultWeights } from '@parley/negotiation/score/weights'
import { queryOut } from '@parley/wire/codecs/parley/negotiation'
import { ParleyError } from '@parley/wire/errors'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import type { IncomingMessage, SendMessage } from '@parley/wire/model/call'

const textMaxLength = 10_000
/** The part of it that comes from the end of a longer text. */
const endLength = 2000

/**
 * Derives a message's negotiation request from its text, the types of its parts and the accepted output modes. Fields
 * of `configuration.negotiation` override it.
 * @throws ParleyError InvalidParams
 */
export function requirementsOf(
  { message, configuration }: SendMessage,
  given: unknown,
  minScore: number,
): NegotiationRequest {
  if (given !== undefined && (typeof given !== 'object' || given === null || Array.isArray(given)))
    throw invalid([{ path: '', message: 'must be an object' }])
  const outputs = configuration?.acceptedOutputModes ?? []
  try {
    return parseNegotiation({
      // A message without words matches no skill.
      ...queryOut({
        taskSummary: textOf(message) || ' ',
        inputMimeTypes: typesOf(message),
        outputMimeTypes: outputs.length > 0 ? outputs : undefined,
        weights: defaultWeights,
        minScore,
      }),
      ...given,
    })
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error
    throw invalid((error.data['issues'] as Issue[] | undefined) ?? [])
  }
}

/** Whether a message with several needs may be split (spec/gateway-routing.md#several-needs). @throws ParleyError InvalidParams */
export function maySplit(given: unknown): boolean {
  const split = isObject(given) ? given['split'] : undefined
  if (split === undefined || split === null || typeof split === 'boolean') return split === true
  throw invalid([{ path: 'split', message: 'must be true or false' }])
}

/** @throws ParleyError InvalidParams always, with the reason why the message cannot be split and what to do */
export function refuseSplit(message: string): never {
  throw invalid([{ path: 'split', message }], message)
}

interface Issue {
  path: string
  message: string
}

function invalid(issues: Issue[], message?: string): ParleyError {
  const below = 'configuration.negotiation'
  return new ParleyError('InvalidParams', {
    ...(message !== undefined && { message }),
    data: {
      issues: issues.map(({ path, ...issue }) => ({
        path: path === '' ? below : `${below}.${path}`,
        ...issue,
      })),
    },
  })
}

/**
 * The text parts, of which a long text loses its middle, because instructions are at its beginning or end. The names and types of
 * the files when there is no text.
 */
export function textOf({ parts }: IncomingMessage): string {
  const texts = parts.flatMap((part) => (part.kind === 'text' ? [withoutMiddle(part.text)] : []))
  const text = withoutMiddle(texts.join('\n')).trim()
  if (text !== '') return text
  const names = parts.flatMap((part) => (part.kind === 'file' ? [part.file.name, part.file.mimeType] : []))
  return names.filter(Boolean).join(' ').slice(0, textMaxLength)
}

function withoutMiddle(text: string): string {
  if (text.length <= textMaxLength) return text
  return `${text.slice(0, textMaxLength - endLength)}\n${text.slice(1 - endLength)}`
}

function typesOf({ parts }: IncomingMessage): string[] {
  const types = parts.flatMap((part) => {
    if (part.kind === 'text') return ['text/plain']
    if (part.kind === 'data') return ['application/json']
    return part.file.mimeType === undefined ? [] : [part.file.mimeType]
  })
  return [...new Set(types)].slice(0, 100)
}
