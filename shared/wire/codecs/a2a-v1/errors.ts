import { type ErrorData, type ErrorName, errorTable, type ParleyError } from '../../errors.ts'
import { isObject } from '../../jsonrpc/envelope.ts'
import type { WireError } from '../codec.ts'
import { a2aStatus, errorReader } from '../error-answer.ts'
import { snakeOf } from '../parley/spelling.ts'
import { fieldOf } from './proto-json.ts'

/** The errors of A2A with their gRPC status (A2A 1.0, 5.4). The reason that identifies an error is its name. */
const a2aErrors: Partial<Record<ErrorName, { code: number; status: string }>> = {
  TaskNotFound: { code: -32001, status: 'NOT_FOUND' },
  TaskNotCancelable: { code: -32002, status: 'FAILED_PRECONDITION' },
  PushNotificationNotSupported: { code: -32003, status: 'FAILED_PRECONDITION' },
  UnsupportedOperation: { code: -32004, status: 'FAILED_PRECONDITION' },
  ContentTypeNotSupported: { code: -32005, status: 'INVALID_ARGUMENT' },
  InvalidAgentResponse: { code: -32006, status: 'INTERNAL' },
  ExtensionSupportRequired: { code: -32008, status: 'FAILED_PRECONDITION' },
  VersionNotSupported: { code: -32009, status: 'FAILED_PRECONDITION' },
}

/** Errors that are sent by another name. -32007 is for agents that declare an extended card. */
const sentAs: Partial<Record<ErrorName, ErrorName>> = {
  TaskImmutable: 'UnsupportedOperation',
  AuthenticatedExtendedCardNotConfigured: 'UnsupportedOperation',
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

/** The errors of JSON-RPC itself, which have no reason. */
const rpcErrors = new Set<ErrorName>([
  'ParseError',
  'InvalidRequest',
  'MethodNotFound',
  'InvalidParams',
  'InternalError',
])

export function writeError(error: ParleyError): WireError {
  return {
    status: a2aStatus(error),
    code: codeOf(error),
    message: error.message,
    data: detailsOf(error),
  }
}

/** -32009 is VersionNotSupported in A2A, so a missing token has the first code that JSON-RPC leaves to servers. */
function codeOf(error: ParleyError): number {
  const name = nameOf(error)
  if (name === 'AuthenticationRequired') return -32_000
  return a2aErrors[name]?.code ?? error.code
}

/** The media type of a request has the error of the media types in its message. */
function nameOf({ error, status }: ParleyError): ErrorName {
  return status === 415 ? 'ContentTypeNotSupported' : (sentAs[error] ?? error)
}

/** The error in the form of AIP-193. */
export function writeRestError(error: ParleyError): { status: number; body: unknown } {
  const { status: code, message } = error
  const status = a2aErrors[nameOf(error)]?.status ?? grpcStatus.get(code) ?? 'INTERNAL'
  return { status: code, body: { error: { code, status, message, details: detailsOf(error) } } }
}

const typePrefix = 'type.googleapis.com/google.'

/** Returns typed objects: the reason of the error, the invalid fields, and data that is not text. */
function detailsOf(thrown: ParleyError): object[] {
  const error = nameOf(thrown)
  const { issues, ...rest } = thrown.data
  const texts: Record<string, string> = {}
  const others: ErrorData = {}
  for (const [name, value] of Object.entries(rest)) {
    if (typeof value === 'string') texts[name] = value
    else if (typeof value === 'number' || typeof value === 'boolean') texts[name] = String(value)
    else if (value !== undefined && value !== null) others[name] = value
  }
  const metadata = Object.keys(texts).length === 0 ? undefined : texts
  const details: object[] = []
  if (!rpcErrors.has(error) || metadata !== undefined)
    details.push({
      '@type': `${typePrefix}rpc.ErrorInfo`,
      reason: reasonOf(error),
      domain: a2aErrors[error] === undefined ? 'parley' : 'a2a-protocol.org',
      metadata,
    })
  if (Array.isArray(issues))
    details.push({ '@type': `${typePrefix}rpc.BadRequest`, fieldViolations: issues.map(violationOf) })
  if (Object.keys(others).length > 0) details.push({ '@type': `${typePrefix}protobuf.Struct`, value: others })
  return details
}

function violationOf(issue: unknown) {
  const { path, message } = isObject(issue) ? issue : {}
  return { field: fieldNamed(textOf(path)), description: textOf(message) }
}

/** Checks after the codec name the fields as in Parley's own dialect. The fields of a webhook are those of the request here. */
function fieldNamed(path: string): string {
  return path === 'cursor' ? 'pageToken' : path.replace(/^push_notification_config\./, '')
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function reasonOf(error: ErrorName): string {
  return snakeOf(error).slice(1).toUpperCase()
}

/** The errors of another server: by their reason, by the code of JSON-RPC, and by the HTTP status in AIP-193. */
const namesByReason = new Map<unknown, ErrorName>([
  ['EXTENDED_AGENT_CARD_NOT_CONFIGURED', 'AuthenticatedExtendedCardNotConfigured'],
])
const namesByCode = new Map<unknown, ErrorName>([
  [-32_000, 'AuthenticationRequired'],
  [-32_007, 'AuthenticatedExtendedCardNotConfigured'],
  [400, 'InvalidParams'],
  [401, 'AuthenticationRequired'],
  [403, 'InsufficientPermissions'],
  [404, 'NotFound'],
  [409, 'Conflict'],
  [429, 'TooManyRequests'],
  [503, 'Unavailable'],
])
let name: ErrorName
for (name in errorTable) {
  const reason = reasonOf(name)
  if (!namesByReason.has(reason)) namesByReason.set(reason, name)
  const code = a2aErrors[name]?.code ?? (rpcErrors.has(name) ? errorTable[name].code : undefined)
  if (code !== undefined && !namesByCode.has(code)) namesByCode.set(code, name)
}

/** Reads the error of a JSON-RPC answer or of a REST answer. */
export const readError = errorReader((code, details) => {
  const reasons = Array.isArray(details) ? details.map((one) => fieldOf(one, 'reason')) : []
  const reason = reasons.find((one) => namesByReason.has(one))
  return namesByReason.get(reason) ?? namesByCode.get(code)
})
