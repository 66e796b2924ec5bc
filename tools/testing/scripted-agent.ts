import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A request to the server. */
export interface ScriptedCall {
  path: string
  headers: IncomingHttpHeaders
  method: string
  params: Record<string, unknown>
  /** The bytes of the request as text. */
  body: string
  /** Number of earlier calls of this method. */
  earlier: number
}

/** The response. `after` says whether the stream ends, breaks off, or stays open without data. */
export type ScriptedAnswer =
  | { result: unknown; headers?: Record<string, string> }
  | { error: { code: number; message: string; data?: unknown }; status: number }
  | { frames: (object | string)[]; after?: 'end' | 'break' | 'silence' }
  | { status: number; body: string; type?: string }

type Script = Record<string, (call: ScriptedCall) => ScriptedAnswer | Promise<ScriptedAnswer>>

/**
 * An HTTP server with scripted responses, to test clients with servers that disconnect, hang or send invalid data.
 * Keys are JSON-RPC methods, or `GET /path`.
 */
export async function scriptedAgent(script: Script) {
  const calls: ScriptedCall[] = []
  const server = createServer((request, response) => {
    void serve(request, response, script, calls)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

async function serve(
  request: IncomingMessage,
  response: ServerResponse,
  script: Script,
  calls: ScriptedCall[],
) {
  const path = request.url ?? '/'
  const body = await bodyOf(request)
  const rpc = request.headers['content-type'] === 'application/json' ? JSON.parse(body) : undefined
  const method: string = rpc?.method ?? `${request.method} ${path.split('?')[0]}`
  const params = rpc?.params ?? Object.fromEntries(new URLSearchParams(body))
  const earlier = calls.filter((call) => call.method === method).length
  const call = { path, headers: request.headers, method, params, body, earlier }
  // Clients also read cards, so requests that the script does not mention are not counted.
  if (request.method !== 'GET' || script[method] !== undefined) calls.push(call)
  const answer = (await script[method]?.(call)) ?? {
    error: { code: -32601, message: 'Method not found' },
    status: 404,
  }
  if ('frames' in answer) return stream(response, answer)
  if ('body' in answer) {
    return response.writeHead(answer.status, { 'content-type': answer.type ?? 'text/plain' }).end(answer.body)
  }
  const status = 'error' in answer ? answer.status : 200
  const said = 'error' in answer ? { error: answer.error } : { result: answer.result }
  const headers = 'headers' in answer ? answer.headers : {}
  const envelope = rpc === undefined ? answer : { jsonrpc: '2.0', id: rpc.id, ...said }
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(envelope))
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}

function stream(response: ServerResponse, answer: { frames: (object | string)[]; after?: string }): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const frame of answer.frames) {
    response.write(typeof frame === 'string' ? frame : sseFrame(frame as { sequence?: number }))
  }
  // The connection must not close before the bytes are sent.
  if (answer.after === 'break') setImmediate(() => response.write(':\n\n', () => response.destroy()))
  else if (answer.after !== 'silence') response.end()
}

const sseFrame = (event: { sequence?: number }) =>
  `${event.sequence === undefined ? '' : `id: ${event.sequence}\n`}data: ${JSON.stringify(event)}\n\n`
