import { createHash, createPrivateKey, type KeyObject } from 'node:crypto'
import { jsonOf } from '@parley/wire/model/json-text'
import type { JsonObject } from '@parley/wire/model/task'
import canonicalize from 'canonicalize'
import { CompactSign, compactVerify, decodeProtectedHeader, importJWK } from 'jose'
import { z } from 'zod'
import { readBase58 } from './base58.ts'
import { type DidDocument, verifyDocument } from './document.ts'

/** Claims of a gateway about an agent, signed in the `proof` of a registry entry. */
export interface Vouched {
  /** DID of the gateway. */
  iss: string
  /** DID of the agent; null if there is none. */
  sub: string | null
  /** Keys of the agent, base58, oldest first. */
  keys: string[]
  /** Address of the agent for clients of the gateway. */
  url: string
  /** `cardHash` of the card in the entry. */
  card_hash: string
  verified: boolean
  /** Time of signing, in Unix seconds. */
  iat: number
}

const vouched = z.object({
  iss: z.string(),
  sub: z.string().nullable(),
  keys: z.array(z.string()),
  url: z.string(),
  card_hash: z.string(),
  verified: z.boolean(),
  iat: z.number(),
})
const type = 'parley-entry+jws'

/**
 * Returns the SHA-256 of the card's RFC 8785 form, base64url.
 * @throws Error if the card has no such form because of a lone surrogate
 */
export function cardHash(card: JsonObject): string {
  return createHash('sha256')
    .update(canonicalize(card) ?? '')
    .digest('base64url')
}

/**
 * Signs claims with the gateway's key as a compact EdDSA JWS whose `kid` is the key's id in the gateway's document.
 */
export class Voucher {
  readonly #did: string
  readonly #kid: string
  readonly #key: KeyObject

  /** @param signer the default `kid` is the DID and `#key-1` */
  constructor({ did, seed, kid = `${did}#key-1` }: { did: string; seed: Uint8Array; kid?: string }) {
    this.#did = did
    this.#kid = kid
    const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
    this.#key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    der.fill(0)
  }

  sign(claims: Omit<Vouched, 'iss' | 'iat'>): Promise<string> {
    const payload: Vouched = { iss: this.#did, ...claims, iat: Math.floor(Date.now() / 1000) }
    return new CompactSign(Buffer.from(JSON.stringify(payload)))
      .setProtectedHeader({ alg: 'EdDSA', kid: this.#kid, typ: type })
      .sign(this.#key)
  }
}

/** Thrown if a proof is invalid. The message is a sentence. */
export class ProofFault extends Error {
  override readonly name = 'ProofFault'
}

/**
 * Verifies a proof with the gateway's document. The caller has to compare the claims with the registry entry.
 * @throws ProofFault, DocumentFault
 */
export async function verifyProof(proof: string, gateway: DidDocument): Promise<Vouched> {
  verifyDocument(gateway, gateway.id)
  if (proof.length > 100_000) throw new ProofFault('The proof is malformed.')
  const { kid, typ } = headerOf(proof)
  // Any valid key is accepted, because replicas sign with the old or the new key during a rotation.
  const method = gateway.authentication.find(({ id }) => id === kid)
  const x = readBase58(method?.publicKeyBase58 ?? '', 32)
  if (x === undefined || typ !== type)
    throw new ProofFault('The proof was not made with a key of this document.')
  const key = await importJWK(
    { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(x).toString('base64url') },
    'EdDSA',
  )
  const { payload } = await compactVerify(proof, key, { algorithms: ['EdDSA'] }).catch(() => {
    throw new ProofFault('The proof is not signed by the gateway.')
  })
  const claims = vouched.safeParse(jsonOf(Buffer.from(payload).toString('utf8')))
  if (!claims.success || claims.data.iss !== gateway.id) throw new ProofFault('The proof has invalid claims.')
  return claims.data
}

function headerOf(proof: string) {
  try {
    return decodeProtectedHeader(proof)
  } catch {
    throw new ProofFault('The proof is malformed.')
  }
}
