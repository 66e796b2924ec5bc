import type { ParleyError } from '../errors.ts'
import { errorEnvelope, type RequestId } from '../jsonrpc/envelope.ts'
import type { Operation } from '../model/operation.ts'
import type { Codec } from './codec.ts'

/** The HTTP response to a failed JSON-RPC call. */
export interface ErrorAnswer {
  status: number
  /** The media type. */
  type: string
  body: string
}

const streaming = new Set<Operation | undefined>(['streamMessage', 'resubscribe'])

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
  return { status, type: 'application/json; charset=utf-8', body }
}
