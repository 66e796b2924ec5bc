/** `agent:execute` implies read and write; `agent:admin` is for operators (spec/authentication.md#scopes). */
export type Scope = 'agent:read' | 'agent:write' | 'agent:admin'

/** An authenticated caller, determined by introspection of its token. */
export interface Caller {
  /** Owner of the caller's tasks: the token's `client_id`, or its `sub` if there is none. */
  id: string
  /** The id if it is a DID. */
  did?: string
  /** The signature of a signed request (spec/authentication.md#did-signatures). */
  signature?: Uint8Array
  /** The server that the signature names (`X-DID-Audience`). */
  signedAudience?: string
  scopes: ReadonlySet<string>
  /** Servers to which `aud` restricts the token (RFC 8707). If absent, the token is unrestricted. */
  audience?: readonly string[]
}

export function mayUse(caller: Caller, scope: Scope): boolean {
  if (caller.scopes.has(scope)) return true
  return scope !== 'agent:admin' && caller.scopes.has('agent:execute')
}
