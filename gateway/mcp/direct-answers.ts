import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  isSpecType,
  PROTOCOL_VERSION_META_KEY,
  SERVER_INFO_META_KEY,
} from '@modelcontextprotocol/server'
import type { FastifyRequest } from 'fastify'
import { z } from 'zod'
import { protocolError } from './call-errors.ts'
import type { Exchange } from './exchange.ts'
import { listTtlMs, serverInfo } from './mcp-server.ts'
import type { ToolCalls } from './tool-calls.ts'
import type { ToolCatalog } from './tool-catalog.ts'

const version = '2026-07-28'
const envelope = z.strictObject({
  [PROTOCOL_VERSION_META_KEY]: z.literal(version),
  [CLIENT_INFO_META_KEY]: z.custom<object>(isSpecType.Implementation).optional(),
  [CLIENT_CAPABILITIES_META_KEY]: z.custom<object>(isSpecType.ClientCapabilities),
  // The trace was read before.
  traceparent: z.unknown().optional(),
  tracestate: z.unknown().optional(),
})
const message = { jsonrpc: z.literal('2.0'), id: z.union([z.string(), z.int()]) }
const directRequest = z.discriminatedUnion('method', [
  z.strictObject({
    ...message,
    method: z.literal('tools/list'),
    params: z.strictObject({ _meta: envelope, cursor: z.string().max(2048).optional() }),
  }),
  z.strictObject({
    ...message,
    method: z.literal('tools/call'),
    // A name without encoding in its header.
    params: z.strictObject({
      _meta: envelope,
      name: z.string().regex(/^[\w.-]+$/),
      arguments: z.unknown().optional(),
    }),
  }),
])
type DirectRequest = z.output<typeof directRequest>

/**
 * Returns the request if it has only what is answered directly: a list or a call of tools of revision 2026-07-28 without
 * progress, payment, or the answer to a question, with matching headers. The library serves all other requests.
 */
export function directRequestIn(
  { method, headers }: Pick<FastifyRequest, 'method' | 'headers'>,
  body: unknown,
): DirectRequest | undefined {
  if (method !== 'POST' || headers['mcp-protocol-version'] !== version) return undefined
  if (headers['content-type'] !== 'application/json') return undefined
  const { data } = directRequest.safeParse(body)
  if (data === undefined || headers['mcp-method'] !== data.method) return undefined
  if (data.method === 'tools/call' && headers['mcp-name'] !== data.params.name) return undefined
  return data
}

export interface DirectAnswerOptions {
  catalog: ToolCatalog
  toolCalls: ToolCalls
  /** Aborted when the client has disconnected. */
  signal: AbortSignal
}

/** Returns the response as JSON. It is the same as that of the library, which takes more CPU time. */
export async function directAnswer(
  request: DirectRequest,
  exchange: Exchange,
  options: DirectAnswerOptions,
): Promise<string | readonly Buffer[]> {
  const { id } = request
  try {
    return request.method === 'tools/list'
      ? listAnswer(request, exchange, options)
      : await callAnswer(request, exchange, options)
  } catch (thrown) {
    const { code, message: text, data } = protocolError(thrown)
    return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message: text, data } })
  }
}

const serverMeta = { [SERVER_INFO_META_KEY]: serverInfo }

/**
 * Returns the answer in pieces, because a copy of each page would make most of the garbage of the process. The JSON of the
 * tools is that of the page, which is kept until the tools change.
 */
function listAnswer(
  { id, params }: Extract<DirectRequest, { method: 'tools/list' }>,
  { directory, agent, caller }: Exchange,
  { catalog }: DirectAnswerOptions,
): Buffer[] {
  const { json, nextCursor } = catalog.page(directory, agent, caller.id, params.cursor)
  const facts = { nextCursor, ttlMs: listTtlMs, cacheScope: 'private', resultType: 'complete' }
  return [
    Buffer.from(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"tools":`),
    json,
    Buffer.from(`,${JSON.stringify({ ...facts, _meta: serverMeta }).slice(1)}}`),
  ]
}

async function callAnswer(
  { id, params }: Extract<DirectRequest, { method: 'tools/call' }>,
  exchange: Exchange,
  { toolCalls, signal }: DirectAnswerOptions,
): Promise<string> {
  const { _meta, ...call } = params
  const result = await toolCalls.call(exchange, call, {
    mcpReq: {
      id,
      envelope: { [CLIENT_CAPABILITIES_META_KEY]: _meta[CLIENT_CAPABILITIES_META_KEY] },
      signal,
      requestState: () => undefined,
      // Without a progress token there is no progress to report.
      notify: () => Promise.resolve(),
    },
  })
  return JSON.stringify({
    jsonrpc: '2.0',
    id,
    result: { resultType: 'complete', ...result, _meta: { ...result._meta, ...serverMeta } },
  })
}
