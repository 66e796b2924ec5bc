/**
 * `agent:execute` implies read and write; `agent:admin` is for operators; the gateway uses `agent:ledger` on behalf of
 * operators (spec/authentication.md#scopes).
 */
export type Scope = 'agent:read' | 'agent:write' | 'agent:admin' | 'agent:ledger'

/** An authenticated caller, determined by introspection of its token. */
export interface Caller {
  /**
   * Owner of the caller's tasks: the token's `client_id`, or its `sub` if there is none. If an agent acts for the client,
   * the id is `delegatedOwner(subject, delegate)`, so that the agent has access only to what it created for the client.
   */
  id: string
  /** The token's `client_id`, or its `sub` if there is none: the party on behalf of which the request is made. */
  subject: string
  /** Client id of the agent that acts for the subject (RFC 8693 `act`). Absent if the subject itself sent the request. */
  delegate?: string
  /** All parties that act for the subject, the current one first: gateways (by their address) and agents. */
  actors?: readonly string[]
  /** The addresses that name gateways in `actors`. If absent, each http(s) address does (`Introspection.gateways`). */
  gateways?: readonly string[]
  /** The DID of the party that sent the request: of the delegate, or of the subject if there is no delegate. */
  did?: string
  /** The signature of a signed request (spec/authentication.md#did-signatures). */
  signature?: Uint8Array
  /** The server that the signature names (`X-DID-Audience`). */
  signedAudience?: string
  scopes: ReadonlySet<string>
  /** Servers to which `aud` restricts the token (RFC 8707). If absent, the token is unrestricted. */
  audience?: readonly string[]
}

const ownerSeparator = '\u001F'

/** Owner of the objects that an agent creates for a client. Client ids contain no control characters. */
export function delegatedOwner(subject: string, delegate: string): string {
  return `${subject}${ownerSeparator}${delegate}`
}

/** Whether the objects of `owner` were created by the caller, or by an agent that acted for the caller. */
export function ownsFor({ id, delegate }: Pick<Caller, 'id' | 'delegate'>, owner: string): boolean {
  return owner === id || (delegate === undefined && owner.startsWith(`${id}${ownerSeparator}`))
}

/** The client for which an owner acts: the owner itself, or the client for which agents created a task. */
export function subjectOf(owner: string): string {
  return owner.split(ownerSeparator, 1)[0] ?? owner
}

/** The client ids of all agents that act for the subject, the current one first. */
export function actingAgents({ actors = [], gateways }: Pick<Caller, 'actors' | 'gateways'>): string[] {
  return actors.filter((name) => !isGateway(name, gateways))
}

export function mayUse(caller: Caller, scope: Scope): boolean {
  if (caller.scopes.has(scope)) return true
  return (scope === 'agent:read' || scope === 'agent:write') && caller.scopes.has('agent:execute')
}

/** The address of the gateway that forwarded the request, according to the token. Undefined for a direct request. */
export function forwardedBy({ actors, gateways }: Pick<Caller, 'actors' | 'gateways'>): string | undefined {
  const actor = actors?.[0]
  return actor !== undefined && isGateway(actor, gateways) ? actor : undefined
}

/** Gateways are named by their address. They forward requests and do not act on their own. */
function isGateway(actor: string, gateways: readonly string[] | undefined): boolean {
  return gateways === undefined ? /^https?:/.test(actor) : gateways.includes(actor)
}
