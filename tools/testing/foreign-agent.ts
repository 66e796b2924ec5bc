import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'
import { z } from 'zod'

const rpcRequest = z.looseObject({
  id: z.unknown().optional(),
  method: z.string(),
  params: z.record(z.string(), z.unknown()).default({}),
})

/** A request that the agent received. */
export interface ForeignRequest {
  id: unknown
  method: string
  params: Record<string, unknown>
  headers: IncomingHttpHeaders
  /** Path and query. */
  url: string
}

export interface ForeignReply {
  response: ServerResponse
  /** Answers with a JSON-RPC result. */
  result(value: unknown): void
  error(code: number, message: string): void
  /** Sends a frame of a stream, which the first frame opens. */
  frame(value: unknown): void
  /** Ends the stream. */
  end(): void
}

export type ForeignScript = (request: ForeignRequest, reply: ForeignReply) => void | Promise<void>

export interface ForeignAgent extends AsyncDisposable {
  url: string
  /** The requests in the order of their arrival. */
  requests: ForeignRequest[]
  /** Replaces the behaviour. */
  script: ForeignScript
  /** The card; undefined: 404. */
  card: unknown
  /** The paths of the card: both by default. */
  cardPaths: string[]
  /** Where requests of the card are redirected. */
  redirect: string | undefined
  /** The number of GET requests. */
  cardRequests: number
}

/** A small A2A server without an SDK, whose answers a test scripts, including those that no SDK would send. */
export async function startForeignAgent(script: ForeignScript, port = 0): Promise<ForeignAgent> {
  const receive = async (request: IncomingMessage, response: ServerResponse) => {
    const url = request.url ?? '/'
    if (request.method === 'GET') {
      const { card, cardPaths, redirect } = agent
      agent.cardRequests += 1
      if (redirect !== undefined) {
        response.writeHead(307, { location: redirect }).end()
        return
      }
      const isCard = cardPaths.includes(url) && card !== undefined
      response.writeHead(isCard ? 200 : 404, { 'content-type': 'application/json' })
      response.end(JSON.stringify(isCard ? card : {}))
      return
    }
    const { id, method, params } = rpcRequest.parse(JSON.parse(await text(request)))
    const received: ForeignRequest = { id, method, params, headers: request.headers, url }
    agent.requests.push(received)
    await agent.script(received, replyTo(id, response))
  }
  const server = createServer((request, response) => void receive(request, response))
  const listening = Promise.withResolvers<void>()
  server.listen(port, '127.0.0.1', listening.resolve)
  await listening.promise
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  const agent: ForeignAgent = {
    url: `http://127.0.0.1:${address.port}`,
    requests: [],
    script,
    card: undefined,
    cardPaths: ['/.well-known/agent.json', '/.well-known/agent-card.json'],
    redirect: undefined,
    cardRequests: 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((closed) => server.close(closed))
    },
  }
  return agent
}

function replyTo(id: unknown, response: ServerResponse): ForeignReply {
  const json = (body: object) =>
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  return {
    response,
    result: (result) => json({ jsonrpc: '2.0', id, result }),
    error: (code, message) => json({ jsonrpc: '2.0', id, error: { code, message } }),
    frame: (result) => {
      if (!response.headersSent) response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
    },
    end: () => response.end(),
  }
}
