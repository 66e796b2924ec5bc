import { connect } from 'node:net'
import type { TestAgent } from '@parley/agent/testing'

export interface RawAnswer {
  status: number
  headers: Headers
  text: string
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever came
  json: any
}

export interface RawRequest {
  path?: string
  method?: string
  headers?: Record<string, string>
  token?: string | undefined
  body?: string | Uint8Array | undefined
}

/** Sends a request with arbitrary bytes and headers. It has no content type unless `headers` contains one. */
export async function raw(agent: { url: string }, request: RawRequest): Promise<RawAnswer> {
  const { path = '/', method = 'POST', token, body } = request
  const headers =
    token === undefined ? request.headers : { authorization: `Bearer ${token}`, ...request.headers }
  const response = await fetch(`${agent.url}${path}`, {
    method,
    redirect: 'manual',
    ...(headers === undefined ? {} : { headers }),
    // Sends bytes, because fetch would add a content type to a string.
    ...(body === undefined ? {} : { body: typeof body === 'string' ? Buffer.from(body) : Buffer.from(body) }),
  })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: jsonOf(text) }
}

/** A JSON-RPC request of `caller`, who has all scopes by default. */
export function rpc(agent: TestAgent, method: string, params: unknown = {}, request: RawRequest = {}) {
  const body = request.body ?? JSON.stringify({ jsonrpc: '2.0', id: 'r-1', method, params })
  const token = 'token' in request ? request.token : agent.caller('alice').token
  return raw(agent, {
    ...request,
    token,
    body,
    headers: { 'content-type': 'application/json', ...request.headers },
  })
}

/** Sends bytes over a socket and returns all received bytes when the server closes it. */
export function bareSocket(url: string, bytes: string | Buffer): Promise<string> {
  const { port } = new URL(url)
  const { promise, resolve } = Promise.withResolvers<string>()
  const chunks: Buffer[] = []
  const socket = connect(Number(port), '127.0.0.1', () => socket.write(bytes))
  socket.on('data', (chunk) => chunks.push(chunk))
  socket.on('error', () => {})
  socket.on('close', () => resolve(Buffer.concat(chunks).toString()))
  return promise
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
