import { type ErrorData, type ErrorName, errorTable, ParleyError } from '../../errors.ts'
import { isObject } from '../../jsonrpc/envelope.ts'
import type { WireError } from '../codec.ts'
import { snakeOf } from './proto-json.ts'

/** The errors of A2A, with the reason that identifies them and their gRPC status (A2A 1.0, 5.4). */
const a2aErrors: Partial<Record<ErrorName, { code: number; reason: string; status: string }>> = {
  TaskNotFound: { code: -32001, reason: 'TASK_NOT_FOUND', status: 'NOT_FOUND' },
  TaskNotCancelable: { code: -32002, reason: 'TASK_NOT_CANCELABLE', status: 'FAILED_PRECONDITION' },
  PushNotificationNotSupported: {
    code: -32003,
    reason: 'PUSH_NOTIFICATION_NOT_SUPPORTED',
    status: 'FAILED_PRECONDITION',
  },
  UnsupportedOperation: { code: -32004, reason: 'UNSUPPORTED_OPERATION', status: 'FAILED_PRECONDITION' },
  ContentTypeNotSupported: { code: -32005, reason: 'CONTENT_TYPE_NOT_SUPPORTED', status: 'INVALID_ARGUMENT' },
  InvalidAgentResponse: { code: -32006, reason: 'INVALID_AGENT_RESPONSE', status: 'INTERNAL' },
  ExtensionSupportRequired: {
    code: -32008,
    reason: 'EXTENSION_SUPPORT_REQUIRED',
    status: 'FAILED_PRECONDITION',
  },
  VersionNotSupported: { code: -32009, reason: 'VERSION_NOT_SUPPORTED', status: 'FAILED_PRECONDITION' },
  // A2A has no error of its own for a message to an ended task. -32007 is for agents that declare an extended card.
  TaskImmutable: { code: -32004, reason: 'UNSUPPORTED_OPERATION', status: 'FAILED_PRECONDITION' },
  AuthenticatedExtendedCardNotConfigured: {
    code: -32004,
    reason: 'UNSUPPORTED_OPERATION',
    status: 'FAILED_PRECONDITION',
  },
}

/** The gRPC status of the other errors, by HTTP status (google.rpc.Code). */
const grpcStatus = new Map([
  [400, 'INVALID_ARGUMENT'],
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [405, 'UNIMPLEMENTED'],
  [409, 'ABORTED'],
  [412, 'FAILED_PRECONDITION'],
  [413, 'INVALID_ARGUMENT'],
  [415, 'INVALID_ARGUMENT'],
  [429, 'RESOURCE_EXHAUSTED'],
  [503, 'UNAVAILABLE'],
])

/** The errors of JSON-RPC itself, which are identified by their code alone. */
const rpcErrors = new Set<ErrorName>([
  'ParseError',
  'InvalidRequest',
  'MethodNotFound',
  'InvalidParams',
  'InternalError',
])

/**
 * JSON-RPC answers have the HTTP status 200, because clients do not read the body of others. Exceptions are refusals that
 * concern HTTP itself: credentials, overload, and the size, type or verb of the request.
 */
export function writeError(error: ParleyError): WireError {
  const isOfHttp = error.status !== errorTable[error.error].status || httpStatuses.has(error.status)
  return {
    status: isOfHttp ? error.status : 200,
    code: codeOf(error),
    message: error.message,
    data: detailsOf(error),
  }
}

const httpStatuses = new Set([401, 403, 429, 503])

/** -32009 is VersionNotSupported in A2A, so a missing token has the first code that JSON-RPC leaves to servers. */
function codeOf({ error, code }: ParleyError): number {
  if (error === 'AuthenticationRequired') return -32_000
  return a2aErrors[error]?.code ?? code
}

/** The error in the form of AIP-193. */
export function writeRestError(error: ParleyError): { status: number; body: unknown } {
  const { status: code, message } = error
  const status = a2aErrors[error.error]?.status ?? grpcStatus.get(code) ?? 'INTERNAL'
  return { status: code, body: { error: { code, status, message, details: detailsOf(error) } } }
}

const typePrefix = 'type.googleapis.com/google.'

/** Returns typed objects: the reason of the error, the invalid fields, and data that is not text. */
function detailsOf({ error, data }: ParleyError): object[] {
  const { issues, ...rest } = data
  const texts: Record<string, string> = {}
  const others: ErrorData = {}
  for (const [name, value] of Object.entries(rest)) {
    if (typeof value === 'string') texts[name] = value
    else if (typeof value === 'number' || typeof value === 'boolean') texts[name] = String(value)
    else if (value !== undefined && value !== null) others[name] = value
  }
  const metadata = Object.keys(texts).length === 0 ? undefined : texts
  const details: object[] = []
  const reason = a2aErrors[error]?.reason
  if (reason !== undefined)
    details.push({ '@type': `${typePrefix}rpc.ErrorInfo`, reason, domain: 'a2a-protocol.org', metadata })
  else if (!rpcErrors.has(error) || metadata !== undefined)
    details.push({
      '@type': `${typePrefix}rpc.ErrorInfo`,
      reason: snakeOf(error).slice(1).toUpperCase(),
      domain: 'parley',
      metadata,
    })
  if (Array.isArray(issues))
    details.push({ '@type': `${typePrefix}rpc.BadRequest`, fieldViolations: issues.map(violationOf) })
  if (Object.keys(others).length > 0) details.push({ '@type': `${typePrefix}protobuf.Struct`, value: others })
  return details
}

function violationOf(issue: unknown) {
  const { path, message } = isObject(issue) ? issue : {}
  return { field: textOf(path), description: textOf(message) }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

const messageMaxChars = 1000
const namesByReason = new Map<unknown, ErrorName>([
  ['EXTENDED_AGENT_CARD_NOT_CONFIGURED', 'AuthenticatedExtendedCardNotConfigured'],
])
const namesByCode = new Map<unknown, ErrorName>([[-32_007, 'AuthenticatedExtendedCardNotConfigured']])
let name: ErrorName
for (name in errorTable) {
  const row = a2aErrors[name]
  if (row === undefined) continue
  if (!namesByReason.has(row.reason)) namesByReason.set(row.reason, name)
  if (!namesByCode.has(row.code)) namesByCode.set(row.code, name)
}
for (name of rpcErrors) namesByCode.set(errorTable[name].code, name)
namesByCode.set(-32_000, 'AuthenticationRequired')

/** Reads the error of a JSON-RPC answer or of a REST answer. An unknown error counts as an internal one of the server. */
export function readError(answer: unknown): ParleyError | undefined {
  const error = isObject(answer) ? answer['error'] : undefined
  if (!isObject(error) || typeof error['code'] !== 'number') return undefined
  const details = error['data'] ?? error['details']
  const reasons = Array.isArray(details)
    ? details.map((one) => (isObject(one) ? one['reason'] : undefined))
    : []
  const reason = reasons.find((one) => namesByReason.has(one))
  const read = namesByReason.get(reason) ?? namesByCode.get(error['code']) ?? 'InternalError'
  const { message } = error
  return new ParleyError(
    read,
    typeof message === 'string' ? { message: message.slice(0, messageMaxChars) } : {},
  )
}
