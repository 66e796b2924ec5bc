import { ParleyError } from '../errors.ts'

/** The ID of a request; the response repeats its type and value. It is null if it could not be read. */
export type RequestId = string | number | null

export interface RpcRequest {
  /** Null in a lenient dialect only. */
  id: RequestId
  method: string
  params: Record<string, unknown>
}

/**
 * @param lenient accepts a request without an ID and counts an object as an unknown method
 * @throws ParleyError InvalidRequest when the JSON is not a JSON-RPC 2.0 request, InvalidParams when `params` is not an object,
 * MethodNotFound
 */
export function readRequest(body: unknown, lenient = false): RpcRequest {
  if (!isObject(body)) {
    throw new ParleyError('InvalidRequest', {
      message: Array.isArray(body) ? 'Batches are not supported' : 'Request must be a JSON object',
    })
  }
  if (body['jsonrpc'] !== '2.0') throw new ParleyError('InvalidRequest', { message: 'jsonrpc must be "2.0"' })
  const id = readId(body)
  if (id === null && !(lenient && (body['id'] === undefined || body['id'] === null))) {
    throw new ParleyError('InvalidRequest', { message: 'id must be a string or an integer' })
  }
  if (lenient && isObject(body['method'])) throw new ParleyError('MethodNotFound')
  if (typeof body['method'] !== 'string') {
    throw new ParleyError('InvalidRequest', { message: 'method must be a string' })
  }
  const params = body['params'] ?? (body['params'] === null ? null : {})
  if (!isObject(params)) throw new ParleyError('InvalidParams', { message: 'params must be an object' })
  return { id, method: body['method'], params }
}

export function readId(body: unknown): RequestId {
  const id = isObject(body) ? body['id'] : null
  return typeof id === 'string' || (typeof id === 'number' && Number.isSafeInteger(id)) ? id : null
}

/** @param result JSON text */
export function resultEnvelope(id: RequestId, result: string): string {
  const [before, after] = resultEnvelopeParts(id)
  return before + result + after
}

/** The texts before and after the JSON of a result. */
export function resultEnvelopeParts(id: RequestId): [before: string, after: string] {
  return [`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":`, '}']
}

/** Leaves out all other properties of `error`. */
export function errorEnvelope(
  id: RequestId,
  error: { code: number; message: string; data: unknown },
): string {
  const { code, message, data } = error
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, data } })
}

/** Returns the `result` of a response; undefined if the response is an error or not JSON-RPC. */
export function resultIn(answer: unknown): unknown {
  return isObject(answer) ? answer['result'] : undefined
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
