import { type Configuration, errors, type Provider } from 'oidc-provider'
import { z } from 'zod'

/** The algorithms of client assertions (`private_key_jwt`, RFC 7523). */
export const assertionAlgorithms = ['ES256', 'Ed25519', 'EdDSA', 'RS256'] as const satisfies string[]

/** The `jti` of an assertion is remembered until it expires, so the time is bounded. */
const lifetimeMaxSeconds = 3600
const jtiMaxChars = 256
const keysMax = 10
const text = z.string().max(128).optional()
const encoded = (minBytes: number, maxBytes: number) =>
  z
    .string()
    .regex(/^[\w-]+$/)
    .refine((value) => {
      const { byteLength } = Buffer.from(value, 'base64url')
      return byteLength >= minBytes && byteLength <= maxBytes
    })
const common = {
  kid: text,
  use: z.literal('sig').optional(),
  alg: text,
  key_ops: z.array(z.literal('verify')).optional(),
  /** WebCrypto adds it to each exported key. */
  ext: z.boolean().optional(),
}
const publicKey = z.discriminatedUnion('kty', [
  z.strictObject({
    ...common,
    kty: z.literal('EC'),
    crv: z.literal('P-256'),
    x: encoded(32, 32),
    y: encoded(32, 32),
  }),
  z.strictObject({ ...common, kty: z.literal('OKP'), crv: z.literal('Ed25519'), x: encoded(32, 32) }),
  // 2048 to 4096 bits.
  z.strictObject({ ...common, kty: z.literal('RSA'), n: encoded(256, 512), e: encoded(1, 8) }),
])
const jwks = z.strictObject({ keys: z.array(publicKey).min(1).max(keysMax) })

/**
 * Validates the inline keys of a client that registers or updates itself. Returns them without `key_ops` and `ext`, which
 * concern the key store of the client. @throws InvalidClientMetadata
 */
export function readJwks(value: unknown): { keys: object[] } {
  const read = jwks.safeParse(value).data
  if (read !== undefined)
    return { keys: read.keys.map((key) => ({ ...key, key_ops: undefined, ext: undefined })) }
  throw new errors.InvalidClientMetadata(
    `jwks must contain 1 to ${keysMax} public keys: EC P-256, OKP Ed25519 or RSA of 2048 to 4096 bits, with no members other than the key, kid, use, alg, key_ops and ext`,
  )
}

/** Bounds what is stored about an assertion. oidc-provider checks its other claims. @throws InvalidClientAuth */
export const checkAssertion: NonNullable<Configuration['assertJwtClientAuthClaimsAndHeader']> = (
  _ctx,
  { exp, jti },
) => {
  if (typeof exp !== 'number' || exp > Date.now() / 1000 + lifetimeMaxSeconds)
    throw new errors.InvalidClientAuth(
      `exp of a client assertion must be at most ${lifetimeMaxSeconds} seconds ahead`,
    )
  if (typeof jti !== 'string' || jti.length > jtiMaxChars)
    throw new errors.InvalidClientAuth(
      `jti of a client assertion must have at most ${jtiMaxChars} characters`,
    )
}

/** Accepts assertions of clients that are configured with the origin as issuer. */
export function acceptOriginAsAudience({ OIDCContext, issuer }: Provider): void {
  const { prototype } = OIDCContext
  // oxlint-disable-next-line typescript/unbound-method -- called with its context below
  const audiencesOf = prototype.clientJwtAuthExpectedAudience
  prototype.clientJwtAuthExpectedAudience = function () {
    return audiencesOf.call(this).add(new URL(issuer).origin)
  }
}
