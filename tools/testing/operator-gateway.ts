import { generateKeyPairSync, type KeyObject, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SignJWT } from 'jose'

export interface StatementKey {
  kid: string
  privateKey: KeyObject
  jwk: object
}

export function newStatementKey(kid: string = randomUUID()): StatementKey {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519')
  return { kid, privateKey, jwk: { ...publicKey.export({ format: 'jwk' }), kid, use: 'sig', alg: 'EdDSA' } }
}

export interface StatementParts {
  header?: object
  claims?: object
  by?: StatementKey
}

/** A server that publishes the keys of operator statements as a gateway does. */
export interface OperatorGateway extends AsyncDisposable {
  url: string
  key: StatementKey
  /** What the gateway answers instead of its keys. */
  answer: { status: number; body: unknown } | undefined
  /** Signs a statement for an agent and a group. Claims and header fields may be replaced. */
  sign(audience: string, group: string, parts?: StatementParts): Promise<string>
}

export async function startOperatorGateway(): Promise<OperatorGateway> {
  const key = newStatementKey()
  const gateway = { key, url: '', answer: undefined as OperatorGateway['answer'] }
  const server = createServer(({ url }, response) => {
    const { status, body } = gateway.answer ?? { status: 200, body: { issuer: gateway.url, keys: [key.jwk] } }
    response.statusCode = url === '/.well-known/operator-jwks.json' ? status : 404
    response.end(JSON.stringify(body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  gateway.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const now = () => Math.floor(Date.now() / 1000)
  return Object.assign(gateway, {
    sign: (audience: string, group: string, { header = {}, claims = {}, by = key }: StatementParts = {}) =>
      new SignJWT({
        iss: gateway.url,
        aud: audience,
        sub: 'root',
        group,
        texts: true,
        jti: randomUUID(),
        iat: now(),
        exp: now() + 60,
        ...claims,
      })
        .setProtectedHeader({ alg: 'EdDSA', typ: 'parley-operator+jwt', kid: by.kid, ...header })
        .sign(by.privateKey),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  })
}
