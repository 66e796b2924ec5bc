import { type NegotiationRequest, parseNegotiation } from '@parley/negotiation/score/request'
import { defaultWeights } from '@parley/negotiation/score/weights'
import { queryOut } from '@parley/wire/codecs/parley/negotiation'
import { ParleyError } from '@parley/wire/errors'
import type { IncomingMessage, SendMessage } from '@parley/wire/model/call'

const textMaxLength = 10_000

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

interface Issue {
  path: string
  message: string
}

function invalid(issues: Issue[]): ParleyError {
  const below = 'configuration.negotiation'
  return new ParleyError('InvalidParams', {
    data: {
      issues: issues.map(({ path, message }) => ({
        path: path === '' ? below : `${below}.${path}`,
        message,
      })),
    },
  })
}

/** The first 10,000 characters of the text parts, or the names and types of the files when there is no text. */
export function textOf({ parts }: IncomingMessage): string {
  const texts = parts.flatMap((part) => (part.kind === 'text' ? [part.text.slice(0, textMaxLength)] : []))
  const text = texts.join('\n').slice(0, textMaxLength).trim()
  if (text !== '') return text
  const names = parts.flatMap((part) => (part.kind === 'file' ? [part.file.name, part.file.mimeType] : []))
  return names.filter(Boolean).join(' ').slice(0, textMaxLength)
}

function typesOf({ parts }: IncomingMessage): string[] {
  const types = parts.flatMap((part) => {
    if (part.kind === 'text') return ['text/plain']
    if (part.kind === 'data') return ['application/json']
    return part.file.mimeType === undefined ? [] : [part.file.mimeType]
  })
  return [...new Set(types)].slice(0, 100)
}
