import { type ErrorName, errorTable, ParleyError } from '../../errors.ts'
import { isObject } from '../../jsonrpc/envelope.ts'
import type { WireError } from '../codec.ts'

/** Errors without a code in A2A, or with another one than in Parley's own dialect. */
const codes: Partial<Record<ErrorName, number>> = {
  TaskImmutable: errorTable.UnsupportedOperation.code,
  // A2A 1.0 defines -32009 and -32008, and its clients read them from servers of this version too.
  VersionNotSupported: -32_009,
  ExtensionSupportRequired: -32_008,
  AuthenticationRequired: -32_000,
}

/**
 * JSON-RPC answers have the HTTP status 200, because the SDKs do not read the JSON of others (spec/a2a.md#03-errors).
 * Exceptions are refusals that concern HTTP itself: credentials, overload, and the size, type or verb of the request.
 */
export function writeError(error: ParleyError): WireError {
  const { status, message, data } = error
  const isOfHttp = status !== errorTable[error.error].status || httpStatuses.has(status)
  return { status: isOfHttp ? status : 200, code: codeOf(error), message, data }
}

const httpStatuses = new Set([401, 403, 429, 503])

/** Parley's own dialect reports -32005 with this name for an agent without webhooks. */
function codeOf({ error, code, data }: ParleyError): number {
  if (error === 'ContentTypeNotSupported' && data['name'] === 'PushNotificationNotSupportedError')
    return errorTable.PushNotificationNotSupported.code
  return codes[error] ?? code
}

/** The length to which another server's message is cut. */
const messageMaxChars = 1000

/** A code that A2A does not define counts as an internal error of the other server. */
export function readError(answer: unknown): ParleyError | undefined {
  const error = isObject(answer) ? answer['error'] : undefined
  if (!isObject(error) || typeof error['code'] !== 'number') return undefined
  const { code, message } = error
  const text = typeof message === 'string' ? { message: message.slice(0, messageMaxChars) } : {}
  return new ParleyError(names.get(code) ?? 'InternalError', text)
}

const standard: readonly ErrorName[] = [
  'ParseError',
  'InvalidRequest',
  'MethodNotFound',
  'InvalidParams',
  'InternalError',
  'TaskNotFound',
  'TaskNotCancelable',
  'PushNotificationNotSupported',
  'UnsupportedOperation',
  'ContentTypeNotSupported',
  'InvalidAgentResponse',
  'AuthenticatedExtendedCardNotConfigured',
]
const names = new Map<number, ErrorName>(standard.map((name) => [errorTable[name].code, name]))
names.set(-32_008, 'ExtensionSupportRequired').set(-32_009, 'VersionNotSupported')
