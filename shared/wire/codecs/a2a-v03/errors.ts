import { type ErrorData, type ErrorName, errorTable, type ParleyError } from '../../errors.ts'
import { isObject } from '../../jsonrpc/envelope.ts'
import type { WireError } from '../codec.ts'
import { a2aStatus, errorReader } from '../error-answer.ts'

/** Errors without a code in A2A, or with another one than in Parley's own dialect. */
const codes: Partial<Record<ErrorName, number>> = {
  TaskImmutable: errorTable.UnsupportedOperation.code,
  // A2A 1.0 defines -32009 and -32008, and its clients read them from servers of this version too.
  VersionNotSupported: -32_009,
  ExtensionSupportRequired: -32_008,
  AuthenticationRequired: -32_000,
}

/** The SDKs do not read the JSON of other statuses (spec/a2a.md#03-errors). */
export function writeError(error: ParleyError): WireError {
  return { status: a2aStatus(error), code: codeOf(error), message: error.message, data: dataOf(error) }
}

/** Checks after the codec name the fields as in Parley's own dialect. */
function dataOf({ data }: ParleyError): ErrorData {
  const { issues } = data
  return Array.isArray(issues) ? { ...data, issues: issues.map(renamed) } : data
}

function renamed(issue: unknown): unknown {
  if (!isObject(issue) || typeof issue['path'] !== 'string') return issue
  const path = issue['path'].replace(/^push_notification_config\./, 'pushNotificationConfig.')
  return { ...issue, path }
}

/** Parley's own dialect reports -32005 with this name for an agent without webhooks. */
function codeOf({ error, code, data }: ParleyError): number {
  if (error === 'ContentTypeNotSupported' && data['name'] === 'PushNotificationNotSupportedError')
    return errorTable.PushNotificationNotSupported.code
  return codes[error] ?? code
}

/** A code that A2A does not define counts as an internal error of the other server. */
export const readError = errorReader((code) => names.get(code))

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
