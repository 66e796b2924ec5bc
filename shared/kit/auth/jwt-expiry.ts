/**
 * `exp` of a token that looks like a JWT, unverified: it only tells "expired" from "not active" in the answer to a token
 * that the provider has already refused.
 */
export function jwtExpiry(token: string): number | undefined {
  const payload = token.split('.')[1]
  if (payload === undefined) return undefined
  try {
    const claims: unknown = JSON.parse(Buffer.from(payload, 'base64url').toString('utf8'))
    const exp = (claims as { exp?: unknown } | null)?.exp
    return typeof exp === 'number' ? exp : undefined
  } catch {
    return undefined
  }
}
