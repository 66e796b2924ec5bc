import { errorTable, type ParleyError } from '../errors.ts'
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

export function writeRestErrorAnswer(rest: RestBinding, error: ParleyError): ErrorAnswer {
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
  const error = isObject(answer) ? answer['error'] : undefined
  if (!isObject(error) || typeof error['code'] !== 'number') return undefined
  const { code } = error
  return { code, status: statuses.get(code) ?? 400, reason: reasonIn(error['data'] ?? error['details']) }
}

/** @param data an object, or typed objects (AIP-193) whose metadata has the reason */
function reasonIn(data: unknown): unknown {
  if (!Array.isArray(data)) return isObject(data) ? data['reason'] : undefined
  const found = data.find((detail) => isObject(detail) && isObject(detail['metadata']))
  return found?.metadata.reason
}
