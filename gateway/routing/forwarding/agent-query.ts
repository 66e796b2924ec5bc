import type { IncomingHttpHeaders } from 'node:http'
import { isObject } from '@parley/wire/jsonrpc/envelope'
import { jsonOf } from '@parley/wire/model/json-text'
import type { Target } from './agent-target.ts'
import { Exchange, type ResponseHead } from './exchange.ts'

export interface QueryResponse {
  status: number
  headers: IncomingHttpHeaders
  /** Of a JSON-RPC answer; undefined where it is an error, or none. */
  result: unknown
  /** Bytes. */
  size: number
}

export interface QueryOptions {
  /** Whose question it is: the caller's own headers, as they go on. */
  headers: IncomingHttpHeaders
  body: Buffer
  signal: AbortSignal
  answerMaxBytes: number
  /** As in `Exchange.collect`. */
  grew?: (bytes: number) => void
}

/** A question of the gateway's own to an agent, with the caller's token. Rejects when there is no answer in time. */
export async function queryAgent(target: Target, { body, ...options }: QueryOptions): Promise<QueryResponse> {
  const { head, bytes } = await ask(target, { ...options, method: 'POST', body })
  return { ...head, result: head.status === 200 ? resultIn(bytes) : undefined, size: bytes.byteLength }
}

/** The JSON of a REST route as `result`; undefined where it is none. Rejects as `queryAgent`. */
export async function getFromAgent(
  target: Target,
  options: Omit<QueryOptions, 'body'>,
): Promise<QueryResponse> {
  const { head, bytes } = await ask(target, { ...options, method: 'GET', body: undefined })
  const result = head.status === 200 ? jsonOf(bytes.toString('utf8')) : undefined
  return { ...head, result, size: bytes.byteLength }
}

async function ask(
  target: Target,
  options: Omit<QueryOptions, 'body'> & { method: 'GET' | 'POST'; body: Buffer | undefined },
): Promise<{ head: ResponseHead; bytes: Buffer }> {
  const { signal, body, method } = options
  signal.throwIfAborted()
  const exchange = new Exchange()
  const stop = () => exchange.abort(signal.reason as Error)
  signal.addEventListener('abort', stop, { once: true })
  const length = body === undefined ? {} : { 'content-length': String(body.byteLength) }
  const headers = { ...options.headers, ...length }
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

/** The `result` of a JSON-RPC answer; undefined where there is none. */
export function resultIn(bytes: Buffer): unknown {
  const envelope = jsonOf(bytes.toString('utf8'))
  return isObject(envelope) ? envelope['result'] : undefined
}

/** Of the caller's headers those that a question of ours takes along: a signature would be one over other bytes. */
export function queryHeaders(headers: IncomingHttpHeaders, requestId: string): IncomingHttpHeaders {
  const { authorization, via } = headers
  return {
    'content-type': 'application/json',
    accept: 'application/json',
    'x-request-id': requestId,
    ...(authorization !== undefined && { authorization }),
    ...(via !== undefined && { via }),
  }
}

export function rpcBody(method: string, params: object): Buffer {
  return Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 'gateway', method, params }))
}

/** Runs over the items with so many at a time; stops taking new ones once `done` says so. */
export async function forEachLimited<T>(
  items: readonly T[],
  limit: number,
  run: (item: T) => Promise<void>,
  done: () => boolean = () => false,
): Promise<void> {
  let next = 0
  const line = async () => {
    while (next < items.length && !done()) await run(items[next++] as T)
  }
  await Promise.all(Array.from({ length: Math.min(limit, items.length) }, line))
}
