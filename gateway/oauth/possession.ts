import type { IncomingMessage } from 'node:http'
import { readPublicKey } from '@parley/kit/auth/client-keys'
import { checkSignedBy } from '@parley/kit/auth/did-signature'
import { ParleyError } from '@parley/wire/errors'
import { type ClientMetadata, errors, type KoaContextWithOIDC, type Provider } from 'oidc-provider'

/** The same limit as that of oidc-provider. */
const bodyMaxBytes = 56 * 1024

/** The raw bodies of registrations in progress. Signatures cover these bytes. */
const bytesOf = new WeakMap<IncomingMessage, Buffer[]>()

/** Records the bodies of registrations and updates while oidc-provider reads them. */
export function keepRegistrationBytes(provider: Provider): void {
  provider.use((ctx, next) => {
    const changes = ctx.method === 'POST' || ctx.method === 'PUT'
    if (changes && /^\/register(\/|$)/.test(ctx.path)) keepBytes(ctx.req)
    return next()
  })
}

function keepBytes(request: IncomingMessage): void {
  const chunks: Buffer[] = []
  let size = 0
  bytesOf.set(request, chunks)
  // The stream does not flow until oidc-provider reads it.
  request.pause().on('data', (chunk: Buffer) => {
    size += chunk.byteLength
    if (size <= bodyMaxBytes) chunks.push(chunk)
  })
}

/**
 * Requires a client with a DID to prove that it holds the registered key. Its request must be signed with that key, like
 * any signed request, and contain the `issuer`, so that it cannot be replayed at another server. Other clients' keys
 * need no proof, because they grant nothing.
 * @throws InvalidClientMetadata
 */
export function checkPossession(
  metadata: ClientMetadata,
  currentKey: unknown,
  ctx: KoaContextWithOIDC,
): void {
  const { client_id: clientId, public_key: key } = metadata
  if (!clientId.startsWith('did:') || key === currentKey) return
  const publicKey = typeof key === 'string' ? readPublicKey(key) : undefined
  if (publicKey === undefined) refuse('a client_id that is a DID requires a public_key')
  const requestBody: Record<string, unknown> = ctx.oidc.body ?? {}
  const { issuer } = requestBody
  if (typeof issuer !== 'string' || trim(issuer) !== trim(ctx.oidc.provider.issuer))
    refuse('a client_id that is a DID requires the issuer of this server as `issuer`')
  const body = Buffer.concat(bytesOf.get(ctx.req) ?? [])
  try {
    checkSignedBy({ headers: ctx.req.headers, body, clientId }, publicKey)
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error
    const reason = String(error.data?.['reason'])
    refuse(`the request must be signed with public_key (X-DID, X-DID-Timestamp, X-DID-Signature): ${reason}`)
  }
}

function trim(issuer: string): string {
  return issuer.replace(/\/+$/, '')
}

function refuse(description: string): never {
  throw new errors.InvalidClientMetadata(description)
}
