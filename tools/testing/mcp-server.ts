import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import {
  createMcpHandler,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { type ForeignAgent, type ForeignScript, startForeignAgent } from './foreign-agent.ts'

export interface TestMcpServer extends AsyncDisposable {
  url: string
  /** The bodies of the requests that the server received, in their order. */
  bodies: string[]
  /** The header that requests must have; others receive 401. */
  authorization: string | undefined
}

/** Starts an MCP server that was made with the official library, of the current revision or of 2025-11-25 with sessions. */
export async function startMcpServer(
  build: () => McpServer,
  era: 'modern' | 'legacy' = 'modern',
): Promise<TestMcpServer> {
  const handler =
    era === 'modern' ? createMcpHandler(build, { legacy: 'reject' }) : { fetch: sessionful(build) }
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const body = await buffer(request)
    server.bodies.push(body.toString())
    if (server.authorization !== undefined && request.headers.authorization !== server.authorization) {
      response.writeHead(401, { 'www-authenticate': 'Bearer' }).end()
      return
    }
    const aborted = new AbortController()
    response.once('close', () => aborted.abort())
    const answer = await handler.fetch(
      new Request(new URL(request.url ?? '/', server.url), {
        method: request.method ?? 'GET',
        headers: Object.fromEntries(
          Object.entries(request.headers).map(([name, value]) => [name, String(value)]),
        ),
        ...(body.length > 0 && { body: new Uint8Array(body) }),
        signal: aborted.signal,
      }),
    )
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    for await (const chunk of answer.body ?? []) response.write(chunk)
    response.end()
  }
  const http = createServer((request, response) => {
    receive(request, response).catch(() => response.destroy())
  })
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve))
  const address = http.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const server: TestMcpServer = {
    url: `http://127.0.0.1:${address.port}/mcp`,
    bodies: [],
    authorization: undefined,
    async [Symbol.asyncDispose]() {
      http.closeAllConnections()
      await new Promise((closed) => http.close(closed))
    },
  }
  return server
}

function sessionful(build: () => McpServer): (request: Request) => Promise<Response> {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
  return async (request) => {
    const id = request.headers.get('mcp-session-id')
    const known = id === null ? undefined : sessions.get(id)
    if (known !== undefined) return known.handleRequest(request)
    const body = await request.clone().text()
    if (!body.includes('"initialize"')) return new Response('{}', { status: id === null ? 400 : 404 })
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => randomUUID(),
      onsessioninitialized: (session) => void sessions.set(session, transport),
    })
    await build().connect(transport)
    return transport.handleRequest(request)
  }
}

/** Starts a server without a library, of which a test scripts the answers to all but the handshake. */
export function startScriptedMcpServer(
  script: ForeignScript,
  era: 'modern' | 'legacy' = 'legacy',
): Promise<ForeignAgent> {
  const capabilities = { tools: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } }
  const serverInfo = { name: 'scripted', version: '1.0.0' }
  return startForeignAgent((request, reply) => {
    const { method } = request
    if (method.startsWith('notifications/')) reply.response.writeHead(202).end()
    else if (method === 'server/discover' && era === 'modern')
      reply.result({
        resultType: 'complete',
        supportedVersions: ['2026-07-28'],
        capabilities,
        ttlMs: 0,
        cacheScope: 'private',
        _meta: { 'io.modelcontextprotocol/serverInfo': serverInfo },
      })
    else if (method === 'server/discover') reply.error(-32_601, 'Method not found')
    else if (method === 'initialize')
      reply.result({ protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo })
    else return script(request, reply)
    return undefined
  })
}
