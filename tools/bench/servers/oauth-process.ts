/**
 * An in-memory OAuth 2.0 server that only answers introspections (RFC 7662) and requests for client keys. It is fast,
 * so that the agent limits the benchmark; every introspection is still an HTTP request.
 */
import { createServer } from 'node:http'
import { tellAddress } from '../support/tell-address.ts'
import { benchKey, clientOf, tokenPattern } from '../support/tokens.ts'

const inactive = JSON.stringify({ active: false })
const metadata = JSON.stringify({ metadata: { public_key: benchKey.publicKeyBase58 } })

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('latin1')
  request.on('data', (chunk: string) => (body += chunk))
  request.on('end', () => {
    const token = tokenPattern.exec(body)?.[0]
    const answer = request.method === 'GET' ? metadata : token === undefined ? inactive : activeAnswer(token)
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': answer.length })
    response.end(answer)
  })
})
server.keepAliveTimeout = 120_000
server.listen(0, '127.0.0.1', () => tellAddress(server))
process.on('SIGTERM', () => process.exit(0))

function activeAnswer(token: string): string {
  const exp = Math.floor(Date.now() / 1000) + 3600
  return JSON.stringify({
    active: true,
    client_id: clientOf(token),
    scope: 'agent:read agent:write',
    token_type: 'Bearer',
    exp,
  })
}
