/**
 * An in-memory OAuth 2.0 server that only answers introspections (RFC 7662), revocations, requests for client keys and
 * polls for leases. It is fast, so that the agent limits the benchmark. With LEASES=no, every look-up of a token is an HTTP request.
 */
import { createServer } from 'node:http'
import { LeaseGrantor } from '@parley/gateway/oauth/leases/lease-grantor'
import { leasePollSchema } from '@parley/kit/auth/lease-protocol'
import { tellAddress } from '../support/tell-address.ts'
import { benchKey, clientOf, tokenPattern } from '../support/tokens.ts'

const inactive = JSON.stringify({ active: false })
const metadata = JSON.stringify({ metadata: { public_key: benchKey.publicKeyBase58 } })
const grantor = process.env['LEASES'] === 'no' ? undefined : new LeaseGrantor()
const revoked = new Set<string>()
const stays = new AbortController().signal

const server = createServer((request, response) => {
  let body = ''
  request.setEncoding('latin1')
  request.on('data', (chunk: string) => (body += chunk))
  const answer = async () => {
    const text = await answerTo(request.method, request.url, body)
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': text.length })
    response.end(text)
  }
  request.on('end', () => void answer())
})
server.keepAliveTimeout = 120_000
server.listen(0, '127.0.0.1', () => tellAddress(server))
process.on('SIGTERM', () => process.exit(0))

async function answerTo(method = 'GET', url = '/', body = ''): Promise<string> {
  if (method === 'GET') return metadata
  if (url.endsWith('/introspection-leases') && grantor !== undefined)
    return JSON.stringify(await grantor.poll('agent', leasePollSchema.parse(JSON.parse(body)), stays))
  const token = tokenPattern.exec(body)?.[0]
  if (url.endsWith('/revoke') && token !== undefined) {
    revoked.add(token)
    await grantor?.invalidate([`t:${token}`])
    return ''
  }
  if (token !== undefined && revoked.has(token)) return inactive
  return token === undefined ? inactive : activeAnswer(token)
}

function activeAnswer(token: string): string {
  const exp = Math.floor(Date.now() / 1000) + 3600
  const state = grantor?.stateFor()
  return JSON.stringify({
    active: true,
    client_id: clientOf(token),
    scope: 'agent:read agent:write',
    token_type: 'Bearer',
    exp,
    ...(state && { parley_lease: { ...state, tags: [`t:${token}`] } }),
  })
}
