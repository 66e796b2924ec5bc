import type { IncomingHttpHeaders } from 'node:http'
import { currentTrace } from '@parley/kit/telemetry/tracing'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'
import type { AuthorizedTarget } from './agent-tokens.ts'
import { Exchange, type ResponseHead } from './exchange.ts'

export interface QueryResponse {
  status: number
  headers: IncomingHttpHeaders
  /** The JSON-RPC result; undefined for an error or a body that is not a JSON-RPC response. */
  result: unknown
  /** Size of the body in bytes. */
  size: number
}

export interface QueryOptions {
  /** The headers of the query, without `Authorization`. */
  headers: IncomingHttpHeaders
  body: Buffer
  signal: AbortSignal
  answerMaxBytes: number
  /** See `Exchange.collect`. */
  grew?: (bytes: number) => void
}

/** Sends the gateway's JSON-RPC query to an agent. Rejects if no response arrives in time. */
export async function queryAgent(
  target: AuthorizedTarget,
  { body, ...options }: QueryOptions,
): Promise<QueryResponse> {
  const { head, bytes } = await requestAgent(target, { ...options, method: 'POST', body })
  return { ...head, result: head.status === 200 ? resultIn(bytes) : undefined, size: bytes.byteLength }
}

/** Returns a REST route's JSON as `result`, or undefined if the body is not JSON. Rejects like `queryAgent`. */
export async function getFromAgent(
  target: AuthorizedTarget,
  options: Omit<QueryOptions, 'body'>,
): Promise<QueryResponse> {
  const { head, bytes } = await requestAgent(target, { ...options, method: 'GET', body: undefined })
  const result = head.status === 200 ? jsonOf(bytes.toString('utf8')) : undefined
  return { ...head, result, size: bytes.byteLength }
}

/** Sends one request to an agent and reads the whole response. Rejects like `queryAgent`. */
export async function requestAgent(
  target: AuthorizedTarget,
  options: Omit<QueryOptions, 'body'> & { method: 'GET' | 'POST'; body: Buffer | undefined },
): Promise<{ head: ResponseHead; bytes: Buffer }> {
  const { signal, body, method } = options
  signal.throwIfAborted()
  const exchange = new Exchange()
  const stop = () => exchange.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  const length = body === undefined ? {} : { 'content-length': String(body.byteLength) }
  const { authorization } = target
  const headers = { ...options.headers, ...length, ...(authorization !== undefined && { authorization }) }
  try {
    target.upstream.dispatch(
      { origin: target.origin, path: target.path, method, headers, body: body ?? null },
      exchange,
    )
    const head = await exchange.head
    return { head, bytes: await exchange.collect(options.answerMaxBytes, options.grew ?? (() => {})) }
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

/** Returns the `result` of a JSON-RPC response, or undefined if there is none. */
export function resultIn(bytes: Buffer): unknown {
  const envelope = jsonOf(bytes.toString('utf8'))
  return isObject(envelope) ? envelope['result'] : undefined
}

/** The caller's headers for a query by the gateway, without signatures, because these cover different bytes. */
export function queryHeaders(headers: IncomingHttpHeaders, requestId: string): IncomingHttpHeaders {
  const { via } = headers
  return {
    'content-type': 'application/json',
    accept: 'application/json',
    'x-request-id': requestId,
    ...(via !== undefined && { via }),
    ...currentTrace(),
  }
}

export function rpcBody(method: string, params: object): Buffer {
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 'gateway', method, params }))
}

/** Runs `run` for each item, with at most `limit` at a time. Starts no further items once `done` returns true. */
export async function forEachLimited<T>(
  items: readonly T[],
  limit: number,
  run: (item: T) => Promise<void>,
  done: () => boolean = () => false,
): Promise<void> {
  let next = 0
  const worker = async () => {
    for (let item = items[next++]; item !== undefined && !done(); item = items[next++]) await run(item)
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, worker))
}
