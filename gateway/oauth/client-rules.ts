import { readPublicKey } from '@parley/kit/auth/client-keys'
import { type ClientMetadata, errors, type KoaContextWithOIDC } from 'oidc-provider'

/** Every scope that this server knows (spec/authentication.md#scopes). */
export const scopes = ['agent:read', 'agent:write', 'agent:execute', 'agent:admin'] as const

/**
 * Scopes of OpenID Connect that clients of the reference implementation always ask for. They may be registered and asked
 * for, unlock nothing here, and are left out of every token.
 */
export const identityScopes: readonly string[] = ['openid', 'offline']

/** What a client gets that does not say what it wants. The operator's scope is never part of it. */
export const defaultScope = 'agent:read agent:write'
export const operatorScope = 'agent:admin'
const agentScopes: ReadonlySet<string> = new Set(scopes.filter((scope) => scope !== operatorScope))

/**
 * Client metadata beyond RFC 7591. `public_key`: base58 of a raw Ed25519 key. `key_history`: the keys that led to it, each
 * signed by the one before it. `introspection`: may introspect every token. `managed`: made by the gateway itself. The
 * last two are never taken from a registration.
 */
export const extraMetadata = ['public_key', 'key_history', 'introspection', 'managed']

const metadataMaxChars = 16 * 1024
const nameMaxChars = 120
const redirectUrisMax = 10
const uriMaxChars = 2048
const didMaxChars = 255
const loopbackHosts = new Set(['127.0.0.1', '[::1]', 'localhost'])

/** Holds for every client, whoever made it. @throws InvalidClientMetadata */
export function checkClient(metadata: ClientMetadata): void {
  const key = metadata['public_key']
  // One of small order would let anybody sign.
  if (key !== undefined && (typeof key !== 'string' || readPublicKey(key) === undefined)) {
    refuse('public_key must be the base58 form of the 32 bytes of an Ed25519 key')
  }
  checkRedirectUris(metadata.redirect_uris)
}

/**
 * Holds for clients that register or update themselves. Runs before the types of the fields are known, so nothing about
 * them is taken for granted. @throws InvalidClientMetadata
 */
export function checkRegistration(metadata: ClientMetadata): void {
  if (JSON.stringify(metadata).length > metadataMaxChars) refuse('client metadata is too large')
  for (const own of ['introspection', 'managed']) {
    if (metadata[own] !== undefined) refuse(`${own} cannot be registered`)
  }
  // The server would have to fetch these from an address that a stranger chose.
  for (const remote of ['jwks_uri', 'sector_identifier_uri'] as const) {
    if (metadata[remote] !== undefined) refuse(`${remote} is not supported`)
  }
  const asked: unknown = metadata.scope
  const useful =
    typeof asked === 'string' ? asked.split(' ').filter((scope) => !identityScopes.includes(scope)) : []
  if (useful.length === 0 || !useful.every((scope) => agentScopes.has(scope))) {
    refuse(`scope must be of ${[...agentScopes].join(', ')}`)
  }
  checkName(metadata.client_name)
  const grants: unknown = metadata.grant_types
  if (!Array.isArray(grants)) return
  if (metadata.token_endpoint_auth_method === 'none' && grants.includes('client_credentials')) {
    refuse('client_credentials needs a client that authenticates')
  }
  // RFC 7591, section 2: without the code grant there is nothing to redirect to.
  if (!grants.includes('authorization_code'))
    Object.assign(metadata, { response_types: [], redirect_uris: [] })
}

/** The id that a registration asks for, if it is a DID; undefined = the server makes one. @throws InvalidClientMetadata */
export function requestedClientId(ctx: KoaContextWithOIDC): string | undefined {
  const asked: unknown = (ctx.oidc.body as Record<string, unknown> | undefined)?.['client_id']
  if (typeof asked !== 'string' || !asked.startsWith('did:')) return undefined
  if (asked.length > didMaxChars || !/^did:[a-z0-9]+:(?:[\w.:-]|%[\dA-Fa-f]{2})*[\w.-]$/.test(asked)) {
    refuse('client_id is not a well-formed DID')
  }
  return asked
}

export function isLoopback(uri: string): boolean {
  return loopbackHosts.has(URL.parse(uri)?.hostname ?? '')
}

/** https anywhere, http on this machine alone (RFC 8252, section 7.3), nothing else. */
function checkRedirectUris(uris: unknown): void {
  if (!Array.isArray(uris)) return
  if (uris.length > redirectUrisMax) refuse(`redirect_uris must hold at most ${redirectUrisMax} addresses`)
  for (const uri of uris) {
    const url = typeof uri === 'string' && uri.length <= uriMaxChars ? URL.parse(uri) : null
    const safe = url?.protocol === 'https:' || (url?.protocol === 'http:' && loopbackHosts.has(url.hostname))
    if (!safe || url?.username !== '' || url.password !== '') {
      refuse('redirect_uris must be https, or http on a loopback address')
    }
  }
}

/** A person reads the name before approving: nothing that hides or turns text around. */
function checkName(name: unknown): void {
  if (typeof name === 'string' && (name.length > nameMaxChars || /\p{C}/u.test(name))) {
    refuse(`client_name must be at most ${nameMaxChars} printable characters`)
  }
}

function refuse(description: string): never {
  throw new errors.InvalidClientMetadata(description)
}
