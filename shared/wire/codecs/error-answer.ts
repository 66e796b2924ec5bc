import type { ParleyError } from '../errors.ts'
import { errorEnvelope, type RequestId } from '../jsonrpc/envelope.ts'
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
