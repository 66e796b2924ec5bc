import type { IncomingMessage } from 'node:http'
import { readPublicKey } from '@parley/kit/auth/client-keys'
import { checkSignedBy } from '@parley/kit/auth/did-signature'
import { ParleyError } from '@parley/wire/errors'
import { type ClientMetadata, errors, type KoaContextWithOIDC, type Provider } from 'oidc-provider'

/** oidc-provider reads no longer ones. */
const bodyMaxBytes = 56 * 1024

/** The bytes of registrations that are under way: a signature is over them, not over what they mean. */
const bytesOf = new WeakMap<IncomingMessage, Buffer[]>()

/** Keeps what clients send that register or update themselves, while oidc-provider reads it. */
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
  // Paused: it flows when oidc-provider reads it, and each chunk comes by here as well.
  request.pause().on('data', (chunk: Buffer) => {
    size += chunk.byteLength
    if (size <= bodyMaxBytes) chunks.push(chunk)
  })
}

/**
 * A client that is a DID proves that it holds the key which it registers: its request is signed with it, in the headers of
 * any other signed request, and names this server (`issuer`), so that what it sent to another one is of no use here.
 * `known`: the key that the client has so far. The key of a client that is no DID opens nothing, and proves nothing.
 * @throws InvalidClientMetadata
 */
export function checkPossession(metadata: ClientMetadata, known: unknown, ctx: KoaContextWithOIDC): void {
  const { client_id: clientId, public_key: key } = metadata
  if (!clientId.startsWith('did:') || key === known) return
  const publicKey = typeof key === 'string' ? readPublicKey(key) : undefined
  if (publicKey === undefined) refuse('a client_id that is a DID needs a public_key')
  const { issuer } = (ctx.oidc.body ?? {}) as Record<string, unknown>
  if (typeof issuer !== 'string' || trim(issuer) !== trim(ctx.oidc.provider.issuer))
    refuse('a client_id that is a DID is registered with the issuer of this server as `issuer`')
  const body = Buffer.concat(bytesOf.get(ctx.req) ?? [])
  try {
    checkSignedBy({ headers: ctx.req.headers, body, clientId }, publicKey)
  } catch (error) {
    if (!(error instanceof ParleyError)) throw error
    const { reason } = error.data as { reason: string }
    refuse(`the request must be signed with public_key (X-DID, X-DID-Timestamp, X-DID-Signature): ${reason}`)
  }
}

function trim(issuer: string): string {
  return issuer.replace(/\/+$/, '')
}

function refuse(description: string): never {
  throw new errors.InvalidClientMetadata(description)
}
