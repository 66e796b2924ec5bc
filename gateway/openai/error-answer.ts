import { type ErrorAnswer, jsonType } from '@parley/wire/codecs/error-answer'
import type { ParleyError } from '@parley/wire/errors'

/** The base path of the API. */
export const apiPath = '/v1'

/** Returns the answer to a failed request in the format of the API; undefined for other paths. */
export function openAiErrorAnswer(path: string, error: ParleyError): ErrorAnswer | undefined {
  if (path !== apiPath && !path.startsWith(`${apiPath}/`)) return undefined
  const status = statusOf(error)
  return { status, type: jsonType, body: JSON.stringify({ error: errorBody(error) }) }
}

/** The error object of the API. `parley` has the error of the A2A interface (docs/errors.md). */
export function errorBody(error: ParleyError) {
  const { data, code } = error
  const { param, issues, terms, payment, ...details } = data
  const [issue] = Array.isArray(issues) ? issues : []
  const path: unknown = typeof param === 'string' ? param : issue?.path
  const status = statusOf(error)
  return {
    message: messageOf(error, issue),
    type: typeOf(status),
    param: typeof path === 'string' && path !== '' ? path : null,
    code: codeOf(error, status),
    ...(payment !== undefined && { payment }),
    ...(terms !== undefined && { x402: terms }),
    parley: { code, ...details },
  }
}

/** A token without the scope is a 403 in both APIs, an unknown agent a 404. */
function statusOf({ status, error }: ParleyError): number {
  return error === 'ParseError' ? 400 : status
}

const types: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'payment_required',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  429: 'rate_limit_error',
}

const typeOf = (status: number) => types[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error')

const codeOfError: Partial<Record<ParleyError['error'], string>> = {
  AuthenticationRequired: 'invalid_api_key',
  InvalidToken: 'invalid_api_key',
  TokenExpired: 'invalid_api_key',
  TooManyRequests: 'rate_limit_exceeded',
  ParseError: 'invalid_json',
  ContentTypeNotSupported: 'unsupported_value',
}

const codeOfReason: Readonly<Record<string, string>> = { agent: 'model_not_found', route: 'unknown_url' }

function codeOf({ error, data }: ParleyError, status: number): string | null {
  const reason = typeof data['reason'] === 'string' ? data['reason'] : undefined
  const known = codeOfError[error] ?? (reason === undefined ? undefined : (codeOfReason[reason] ?? reason))
  if (known !== undefined) return known
  return status === 413 ? 'request_too_large' : error === 'InvalidParams' ? 'invalid_value' : null
}

function messageOf(
  { error, message }: ParleyError,
  issue: { path?: unknown; message?: unknown } | undefined,
): string {
  if (error === 'AuthenticationRequired')
    return 'You did not provide an API key. Send "Authorization: Bearer <key>" with a key or token of this gateway.'
  if (typeof issue?.message === 'string') return `Invalid value for ${String(issue.path)}: ${issue.message}`
  return message
}
