import { readPublicKey } from '@parley/kit/auth/client-keys'
import { type ClientMetadata, errors, type KoaContextWithOIDC } from 'oidc-provider'
import { readJwks } from './client-assertions.ts'

/** All scopes that this server grants (spec/authentication.md#scopes). */
export const scopes = ['agent:read', 'agent:write', 'agent:execute', 'agent:admin'] as const

/**
 * OpenID Connect scopes that clients of the reference implementation always request. They are accepted and omitted from
 * tokens, because they grant nothing.
 */
export const identityScopes: readonly string[] = ['openid', 'offline']

/** The scope of a client that does not request one. It never includes the operator's scope. */
export const defaultScope = 'agent:read agent:write'
export const operatorScope = 'agent:admin'
const agentScopes: ReadonlySet<string> = new Set(scopes.filter((scope) => scope !== operatorScope))

/**
 * Client metadata beyond RFC 7591. `public_key` is a raw Ed25519 key in base58, and `key_history` lists its
 * predecessors, each of which signed the next. A client with `introspection` may introspect all tokens, and one with
 * `managed` was created by the gateway. `provenance` marks clients that no operator has registered
 * (clients/unverified-client.ts). A client cannot register the last three for itself.
 */
export const extraMetadata = ['public_key', 'key_history', 'introspection', 'managed', 'provenance']

const metadataMaxChars = 16 * 1024
export const nameMaxChars = 120
const redirectUrisMax = 10
const uriMaxChars = 2048
const didMaxChars = 255
const loopbackHosts = new Set(['127.0.0.1', '[::1]', 'localhost'])

/** Returns the first scope in the text that this server does not grant. */
export function unknownScopeIn(text: string): string | undefined {
  const known: ReadonlySet<string> = new Set(scopes)
  return text.split(' ').find((name) => !known.has(name))
}

/** Validates the metadata of any client. @throws InvalidClientMetadata */
export function checkClient(metadata: ClientMetadata): void {
  const key = metadata['public_key']
  // Forged signatures would verify with a key of small order.
  if (key !== undefined && (typeof key !== 'string' || readPublicKey(key) === undefined)) {
    refuse('public_key must be the base58 form of the 32 bytes of an Ed25519 key')
  }
  checkRedirectUris(metadata.redirect_uris)
}

/**
 * Validates the metadata of clients that register or update themselves. It assumes no types, because it runs before
 * oidc-provider validates them.
 * @param isOpen whether the client registers itself without an initial access token
 * @throws InvalidClientMetadata
 */
export function checkRegistration(metadata: ClientMetadata, { isOpen }: { isOpen: boolean }): void {
  if (JSON.stringify(metadata).length > metadataMaxChars) refuse('client metadata is too large')
  for (const own of ['introspection', 'managed']) {
    if (metadata[own] !== undefined) refuse(`${own} cannot be registered`)
  }
  if (metadata['provenance'] !== undefined && !isOpen) refuse('provenance cannot be registered')
  // The server would have to fetch these documents from untrusted addresses.
  for (const remote of ['jwks_uri', 'sector_identifier_uri'] as const) {
    if (metadata[remote] !== undefined) refuse(`${remote} is not supported`)
  }
  if (metadata.jwks !== undefined) Object.assign(metadata, { jwks: readJwks(metadata.jwks) })
  const scope: unknown = metadata.scope
  const useful =
    typeof scope === 'string' ? scope.split(' ').filter((one) => !identityScopes.includes(one)) : []
  if (useful.length === 0 || !useful.every((one) => agentScopes.has(one))) {
    refuse(`scope must be one or more of ${[...agentScopes].join(', ')}`)
  }
  checkName(metadata.client_name)
  const grants: unknown = metadata.grant_types
  if (!Array.isArray(grants)) return
  if (metadata.token_endpoint_auth_method === 'none' && grants.includes('client_credentials')) {
    refuse('client_credentials requires client authentication')
  }
  // No redirect is needed without the code grant (RFC 7591, section 2).
  if (!grants.includes('authorization_code'))
    Object.assign(metadata, { response_types: [], redirect_uris: [] })
}

/**
 * Returns the client id that a registration requests if it is a DID, or undefined if the server generates the id.
 * @throws InvalidClientMetadata
 */
export function requestedClientId(ctx: KoaContextWithOIDC): string | undefined {
  const body: Record<string, unknown> | undefined = ctx.oidc.body
  const clientId = body?.['client_id']
  if (typeof clientId !== 'string' || !clientId.startsWith('did:')) return undefined
  if (clientId.length > didMaxChars || !/^did:[a-z0-9]+:(?:[\w.:-]|%[\dA-Fa-f]{2})*[\w.-]$/.test(clientId)) {
    refuse('client_id is not a well-formed DID')
  }
  return clientId
}

export function isLoopback(uri: string): boolean {
  return loopbackHosts.has(URL.parse(uri)?.hostname ?? '')
}

/** Allows only https and, on loopback addresses, http (RFC 8252, section 7.3). */
function checkRedirectUris(uris: unknown): void {
  if (!Array.isArray(uris)) return
  if (uris.length > redirectUrisMax) refuse(`redirect_uris must contain at most ${redirectUrisMax} addresses`)
  for (const uri of uris) {
    if (!isSafeRedirect(uri)) refuse('redirect_uris must be https, or http on a loopback address')
  }
}

export function isSafeRedirect(uri: unknown): boolean {
  const url = typeof uri === 'string' && uri.length <= uriMaxChars ? URL.parse(uri) : null
  const isSafe = url?.protocol === 'https:' || (url?.protocol === 'http:' && loopbackHosts.has(url.hostname))
  return isSafe && url?.username === '' && url.password === ''
}

/** Whether this is a name as the approval page shows it: no control or bidirectional characters. */
export function isPrintableName(name: unknown): name is string {
  return typeof name === 'string' && name.length <= nameMaxChars && !/\p{C}/u.test(name)
}

function checkName(name: unknown): void {
  if (typeof name === 'string' && !isPrintableName(name)) {
    refuse(`client_name must be at most ${nameMaxChars} printable characters`)
  }
}

function refuse(description: string): never {
  throw new errors.InvalidClientMetadata(description)
}
