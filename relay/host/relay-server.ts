import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { findRestCall } from '@parley/kit/http/rest-call'
import type { Log } from '@parley/kit/process/log'
import { dialectOf, partsOf } from '@parley/wire/codecs/dialects'
import { writeErrorAnswer, writeRestErrorAnswer } from '@parley/wire/codecs/error-answer'
import { ParleyError } from '@parley/wire/errors'
import type { RelayedAgents } from './relayed-agents.ts'

export interface RelayServer extends AsyncDisposable {
  /** The address that the server listens on. The agents are at `/{slug}/…`. */
  address: string
}

/** Listens for requests from the gateway and passes them to the app of the agent that the path names. */
export async function startRelayServer(
  agents: Pick<RelayedAgents, 'use'>,
  { log, ...at }: { host: string; port: number; log: Log },
): Promise<RelayServer> {
  const server = createServer((request, response) => {
    answer(agents, request, response).catch((error: unknown) => {
      log.error({ err: error }, 'a request to an agent failed')
      refuse(request, response, 'The agent cannot be started')
    })
  })
  // The gateway keeps its connections open, and limits the requests of clients itself.
  server.keepAliveTimeout = 72_000
  server.requestTimeout = 0
  server.listen(at.port, at.host)
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : at.port
  return {
    address: `http://${at.host.includes(':') ? `[${at.host}]` : at.host}:${port}`,
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

async function answer(
  agents: Pick<RelayedAgents, 'use'>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const url = request.url ?? '/'
  if (url === '/health') {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{"status":"ok"}')
    return
  }
  const [, slug, rest = '/'] = /^\/([a-z0-9-]{1,63})(\/.*)?$/.exec(url) ?? []
  if (slug !== undefined) request.url = rest
  const isKnown =
    slug !== undefined &&
    (await agents.use(slug, async (app) => {
      const ended = once(response, 'close')
      app.handle(request, response)
      await ended
    }))
  if (!isKnown) refuse(request, response, 'The relay does not know the agent yet')
}

/** Answers in the dialect of the call, with or without a JSON-RPC envelope. */
function refuse(
  { method = 'GET', url = '/', headers }: IncomingMessage,
  response: ServerResponse,
  message: string,
): void {
  if (response.headersSent) return void response.destroy()
  const error = new ParleyError('Unavailable', { message, data: { reason: 'relay' } })
  const { path, query } = partsOf(url)
  const binding = findRestCall(method, path, query)?.binding
  const { status, type, body } =
    binding === undefined
      ? writeErrorAnswer(dialectOf({ path, query, headers }), error, { id: null })
      : writeRestErrorAnswer(binding, error)
  response.writeHead(status, { 'content-type': type, 'retry-after': '2' }).end(body)
}
