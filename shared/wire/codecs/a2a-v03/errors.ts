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
 * Answers have the status 200, because the SDKs do not read the JSON of any other (spec/a2a.md#03-errors). Refused credentials
 * have the status 401 or 403.
 */
export function writeError(error: ParleyError): WireError {
  const { status, message, data } = error
  return { status: status === 401 || status === 403 ? status : 200, code: codeOf(error), message, data }
}

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
