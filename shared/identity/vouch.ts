import { createHash, createPrivateKey, type KeyObject } from 'node:crypto'
import canonicalize from 'canonicalize'
import { CompactSign, compactVerify, importJWK } from 'jose'
import { z } from 'zod'
import type { JsonObject } from '../protocol/task.ts'
import { readBase58 } from './base58.ts'
import { type DidDocument, verifyDocument } from './document.ts'

/** What a gateway says of an agent with its own key: the `proof` of a registry entry. */
export interface Vouched {
  /** DID of the gateway. */
  iss: string
  /** DID of the agent; null where it has none. */
  sub: string | null
  /** Keys of the agent, base58, oldest first. */
  keys: string[]
  /** Where clients of the gateway reach the agent. */
  url: string
  /** `cardHash` of the card that the entry shows. */
  card_hash: string
  verified: boolean
  /** Unix seconds. */
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
 * SHA-256, base64url, of the card in the form of RFC 8785.
 * @throws Error for a card that has no such form: one with half a character in it
 */
export function cardHash(card: JsonObject): string {
  return createHash('sha256')
    .update(canonicalize(card) ?? '')
    .digest('base64url')
}

/** Signs with the gateway's only key: JWS compact, EdDSA, `kid` = its DID + `#key-1`. */
export class Voucher {
  readonly #did: string
  readonly #key: KeyObject

  constructor({ did, seed }: { did: string; seed: Uint8Array }) {
    this.#did = did
    const der = Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed])
    this.#key = createPrivateKey({ key: der, format: 'der', type: 'pkcs8' })
    der.fill(0)
  }

  sign(claims: Omit<Vouched, 'iss' | 'iat'>): Promise<string> {
    const payload: Vouched = { iss: this.#did, ...claims, iat: Math.floor(Date.now() / 1000) }
    return new CompactSign(Buffer.from(JSON.stringify(payload)))
      .setProtectedHeader({ alg: 'EdDSA', kid: `${this.#did}#key-1`, typ: type })
      .sign(this.#key)
  }
}

/** Why a proof does not hold; `message` is a sentence. */
export class ProofFault extends Error {
  override readonly name = 'ProofFault'
}

/**
 * What the gateway of this document says. Whether it says so of the entry at hand is for the caller to compare.
 * @throws ProofFault, DocumentFault
 */
export async function verifyProof(proof: string, gateway: Pick<DidDocument, 'id'>): Promise<Vouched> {
  const keys = verifyDocument(gateway, gateway.id)
  const x = readBase58(keys.at(-1) ?? '', 32)
  if (proof.length > 100_000 || x === undefined) throw new ProofFault('The proof is not one of ours.')
  const key = await importJWK(
    { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(x).toString('base64url') },
    'EdDSA',
  )
  const { payload, protectedHeader } = await compactVerify(proof, key, { algorithms: ['EdDSA'] }).catch(
    () => {
      throw new ProofFault('The proof is not signed by the gateway.')
    },
  )
  if (protectedHeader.kid !== `${gateway.id}#key-${keys.length}` || protectedHeader.typ !== type)
    throw new ProofFault('The proof is not one of the gateway of this document.')
  const said = vouched.safeParse(jsonOf(payload))
  if (!said.success || said.data.iss !== gateway.id)
    throw new ProofFault('The proof does not say what a proof says.')
  return said.data
}

function jsonOf(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'))
  } catch {
    return undefined
  }
}
