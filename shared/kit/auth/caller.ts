/** `agent:execute` implies read and write; `agent:admin` is for operators (spec/authentication.md#scopes). */
export type Scope = 'agent:read' | 'agent:write' | 'agent:admin'

/** Who calls, as the token says it. */
export interface Caller {
  /** Owner of what the caller makes: the token's `client_id`, else its `sub`. */
  id: string
  /** The same, where it is a DID. */
  did?: string
  /** The signature of the request, where it is signed (spec/authentication.md#did-signatures). */
  signature?: Uint8Array
  /** The server that the signature names (`X-DID-Audience`). */
  signedAudience?: string
  scopes: ReadonlySet<string>
  /** Servers that the token names in `aud` (RFC 8707); absent: the token names none. */
  audience?: readonly string[]
}

export function mayUse(caller: Caller, scope: Scope): boolean {
  if (caller.scopes.has(scope)) return true
  return scope !== 'agent:admin' && caller.scopes.has('agent:execute')
}
