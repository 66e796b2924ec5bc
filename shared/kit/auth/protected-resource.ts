const wellKnown = '/.well-known/oauth-protected-resource'

/** A server or a part of one that OAuth clients get tokens for (RFC 9728). */
export interface ProtectedResource {
  /** The OAuth parameter `resource`, and the audience of tokens that are valid only here. */
  resource: string
  /** The scopes that its clients need, separated by spaces. */
  scope: string
}

/** Returns the path of a resource's metadata: the well-known path precedes the path of the resource (RFC 9728, section 3.1). */
export function resourceMetadataPath(resource: string): string {
  return wellKnown + new URL(resource).pathname.replace(/\/+$/, '')
}

/**
 * Returns an address as resources are compared (RFC 8707, RFC 3986 section 6.2): scheme and host in lower case, without a default
 * port and without a trailing slash. Names that are no http addresses are returned unchanged.
 */
export function canonicalResource(resource: string): string {
  const url = /^https?:/i.test(resource) ? URL.parse(resource) : null
  return (url === null ? resource : url.href).replace(/\/+$/, '')
}

/**
 * Adds the address of the resource's metadata to a challenge of the scheme Bearer or DPoP (RFC 9728, section 5.1), and the scopes
 * to request if the challenge names none. Challenges of other schemes, and those that name metadata, are returned unchanged.
 */
export function challengeWithMetadata(challenge: string, { resource, scope }: ProtectedResource): string {
  const [, scheme, rest] = /^(Bearer|DPoP)(?: +(.*))?$/is.exec(challenge) ?? []
  if (scheme === undefined || /\bresource_metadata=/.test(challenge)) return challenge
  const metadata = `resource_metadata="${new URL(resource).origin}${resourceMetadataPath(resource)}"`
  const scopes = /\bscope=/.test(challenge) ? [] : [`scope="${scope}"`]
  return `${scheme} ${[...(rest === undefined || rest === '' ? [] : [rest]), metadata, ...scopes].join(', ')}`
}
