/** A server that forwards everything to `UPSTREAM`, with @fastify/http-proxy or with undici alone (`FORWARDER`). */
import { createServer } from 'node:http'
import httpProxy from '@fastify/http-proxy'
import Fastify from 'fastify'
import { Pool } from 'undici'
import { tellAddress } from '../support/tell-address.ts'

const upstream = process.env['UPSTREAM'] ?? ''

if (process.env['FORWARDER'] === 'undici') {
  const pool = new Pool(upstream, { connections: null, pipelining: 1 })
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const { host: _, connection: __, ...headers } = request.headers
      const options = {
        path: request.url ?? '/',
        method: 'POST' as const,
        headers,
        body: Buffer.concat(chunks),
      }
      pool.dispatch(options, {
        onRequestStart: () => {},
        onResponseStart: (_controller, status, answered) => {
          const { connection: _, 'keep-alive': __, ...kept } = answered
          response.writeHead(status, kept as Record<string, string>)
        },
        onResponseData: (_controller, chunk) => void response.write(chunk),
        onResponseEnd: () => void response.end(),
        onResponseError: () => void response.destroy(),
      })
    })
  })
  server.keepAliveTimeout = 60_000
  server.listen(0, '127.0.0.1', () => tellAddress(server))
} else {
  const app = Fastify({ logger: false })
  await app.register(httpProxy, { upstream, prefix: '/agents/upstream' })
  await app.listen({ host: '127.0.0.1', port: 0 })
  tellAddress(app.server)
}
process.on('SIGTERM', () => process.exit(0))
