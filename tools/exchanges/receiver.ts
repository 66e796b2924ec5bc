import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { challengeAnswer, type Signer } from './signing.ts'

/** A request to the receiver. */
export interface Received {
  method: string
  url: string
  headers: string[]
  body: Buffer
}

export interface Receiver extends AsyncDisposable {
  port: number
  url: string
  /** Waits for `count` requests to a path and returns them. */
  received(path: string, count: number): Promise<Received[]>
}

interface Reply {
  status: number
  body: unknown
}

const waitLimitMs = 30_000

/** A server of the recorder: receives webhooks at `/hook/…` and acts as an external agent at `/agent/…`. */
export async function startReceiver(signer: Signer): Promise<Receiver> {
  const all: Received[] = []
  const server = http.createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { method = '', url = '', rawHeaders: headers } = request
      const body = Buffer.concat(chunks)
      all.push({ method, url, headers, body })
      const { status, body: answer } = replyTo(url, body, signer, portOf(server))
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const port = portOf(server)
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    received: (path, count) => untilReceived(all, path, count),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

async function untilReceived(all: readonly Received[], path: string, count: number): Promise<Received[]> {
  const until = Date.now() + waitLimitMs
  for (;;) {
    const found = all.filter(({ url }) => url === path)
    if (found.length >= count) return found
    if (Date.now() > until) throw new Error(`${path} received ${found.length} requests, expected ${count}`)
    await wait(20)
  }
}

function portOf(server: http.Server): number {
  const address: AddressInfo | string | null = server.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}

function replyTo(url: string, body: Buffer, signer: Signer, port: number): Reply {
  if (url.startsWith('/hook/refusing')) return { status: 410, body: {} }
  if (url.startsWith('/hook/')) return { status: 200, body: {} }
  if (url === '/no-card/.well-known/agent.json') return { status: 200, body: { hello: 'world' } }
  if (url === '/agent/.well-known/agent.json') return { status: 200, body: cardOf(signer, port) }
  if (url === '/agent/agent/skills') return { status: 200, body: { skills: [], total: 0 } }
  if (url.startsWith('/agent/did/resolve')) return { status: 200, body: documentOf(signer) }
  if (url === '/agent/did/challenge') return { status: 200, body: challengeAnswer(signer, jsonIn(body)) }
  if (url === '/agent/health') return { status: 200, body: { status: 'ok' } }
  if (url === '/agent/' || url === '/agent')
    return { status: 200, body: { jsonrpc: '2.0', id: jsonIn(body)['id'], result: [] } }
  return { status: 404, body: { error: 'nothing here' } }
}

function jsonIn(body: Buffer): Record<string, unknown> {
  const value: unknown = JSON.parse(body.toString('utf8') || '{}')
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

function cardOf({ did }: Signer, port: number) {
  return {
    id: did.split(':').at(-1),
    did,
    name: 'External',
    description: 'An agent of the recorder',
    url: `http://127.0.0.1:${port}/agent`,
    version: '1.0.0',
    protocolVersion: '1.0.0',
    kind: 'agent',
    capabilities: { streaming: false, pushNotifications: false },
    skills: [{ id: 'juggle', name: 'Juggle', description: 'Juggles balls', tags: ['circus'] }],
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
  }
}

function documentOf({ did, publicKey }: Signer) {
  const key = {
    id: `${did}#key-1`,
    type: 'Ed25519VerificationKey2020',
    controller: did,
    publicKeyBase58: publicKey,
  }
  return { '@context': ['https://www.w3.org/ns/did/v1'], id: did, authentication: [key] }
}
