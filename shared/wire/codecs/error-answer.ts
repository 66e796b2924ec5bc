import { type ErrorName, errorTable, ParleyError } from '../errors.ts'
import { errorEnvelope, isObject, type RequestId } from '../jsonrpc/envelope.ts'
import type { Operation } from '../model/operation.ts'
import type { Codec, RestBinding } from './codec.ts'

/** The HTTP response to a failed call. */
export interface ErrorAnswer {
  status: number
  /** The media type. */
  type: string
  body: string
}

const streaming = new Set<Operation | undefined>(['streamMessage', 'resubscribe'])

/** The media type of JSON-RPC answers and of errors. */
export const jsonType = 'application/json; charset=utf-8'

export function writeRestErrorAnswer(rest: Pick<RestBinding, 'writeError'>, error: ParleyError): ErrorAnswer {
  const { status, body } = rest.writeError(error)
  return { status, type: jsonType, body: JSON.stringify(body) }
}

/** @param call undefined fields are those that had not been read when the call failed */
export function writeErrorAnswer(
  codec: Codec,
  error: ParleyError,
  { id, operation }: { id: RequestId; operation?: Operation | undefined },
): ErrorAnswer {
  const { status, ...written } = codec.writeError(error)
  const body = errorEnvelope(id, written)
  if (codec.framesErrors === true && status === 200 && streaming.has(operation))
    return { status, type: 'text/event-stream; charset=utf-8', body: `data: ${body}\n\n` }
  return { status, type: jsonType, body }
}

/** The statuses of refusals that concern HTTP itself. */
const httpStatuses = new Set([401, 403, 429, 503])

/**
 * The status of a JSON-RPC error in A2A: 200, because its clients do not read the body of others. Exceptions are refusals that
 * concern HTTP itself: credentials, overload, and the size, type or verb of the request.
 */
export function a2aStatus({ error, status }: ParleyError): number {
  return status !== errorTable[error].status || httpStatuses.has(status) ? status : 200
}

/** The length to which another server's message is cut. */
const messageMaxChars = 1000

/**
 * Creates the reader of another server's errors, with or without a JSON-RPC envelope.
 * @param nameOf returns the name of an error; without one, it counts as an internal error of the other server
 * @param options.keepsData whether the data of the error is read, if it is an object
 */
export function errorReader(
  nameOf: (code: number, details: unknown) => ErrorName | undefined,
  { keepsData = false } = {},
) {
  return (answer: unknown): ParleyError | undefined => {
    const error = wireErrorIn(answer)
    if (error === undefined) return undefined
    const { code, message, details } = error
    const text = typeof message === 'string' ? { message: message.slice(0, messageMaxChars) } : {}
    const data = keepsData && isObject(details) ? { data: details } : {}
    return new ParleyError(nameOf(code, details) ?? 'InternalError', { ...text, ...data })
  }
}

/** @returns undefined if the answer is not an error */
function wireErrorIn(answer: unknown): { code: number; message: unknown; details: unknown } | undefined {
  const error = isObject(answer) ? answer['error'] : undefined
  if (!isObject(error) || typeof error['code'] !== 'number') return undefined
  const { code, message, data, details } = error
  return { code, message, details: data ?? details }
}

/** The errors of other servers, in an answer of any dialect, as a gateway must know them. */
export interface AnsweredError {
  code: number
  /** The HTTP status of the code in Parley's own dialect; other dialects answer most errors with 200. */
  status: number
  /** `data.reason`. */
  reason: unknown
}

const statuses = new Map<number, number>(Object.values(errorTable).map(({ code, status }) => [code, status]))
// In A2A, this code concerns the version of the protocol.
statuses.set(errorTable.AuthenticationRequired.code, 400)

/** Reads the error of an answer in any dialect, with or without a JSON-RPC envelope; undefined if it is not an error. */
export function readAnsweredError(answer: unknown): AnsweredError | undefined {
  const error = wireErrorIn(answer)
  if (error === undefined) return undefined
  const { code, details } = error
  return { code, status: statuses.get(code) ?? 400, reason: reasonIn(details) }
}

/** @param data an object, or typed objects (AIP-193) whose metadata has the reason */
function reasonIn(data: unknown): unknown {
  if (!Array.isArray(data)) return isObject(data) ? data['reason'] : undefined
  const found = data.find((detail) => isObject(detail) && isObject(detail['metadata']))
  return found?.metadata.reason
}
