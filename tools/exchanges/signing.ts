import { hash } from 'node:crypto'
import bs58 from 'bs58'
import nacl from 'tweetnacl'

/** A key pair and its DIDs, derived from a seed: the same in every run. */
export interface Signer {
  did: string
  publicKey: string
  sign(bytes: Uint8Array): string
}

export function signerFrom(seed: number, author: string): Signer {
  const { publicKey, secretKey } = nacl.sign.keyPair.fromSeed(Buffer.alloc(32, seed))
  const id = uuidOf(hash('sha256', publicKey, 'buffer'))
  return {
    did: `did:parley:${author}:agent:${id}`,
    publicKey: bs58.encode(publicKey),
    sign: (bytes) => bs58.encode(nacl.sign.detached(bytes, secretKey)),
  }
}

interface Signing {
  body?: string
  timestamp?: number
  audience?: string
}

/** The headers of a signed request with an ASCII body (spec/authentication.md#signed-payload). */
export function signed(signer: Signer, { body = '', timestamp = seconds(), audience }: Signing = {}) {
  const first = audience === undefined ? '' : `"audience": ${JSON.stringify(audience)}, `
  const { did } = signer
  const text = `{${first}"body": ${JSON.stringify(body)}, "did": ${JSON.stringify(did)}, "timestamp": ${timestamp}}`
  return {
    'x-did': did,
    'x-did-timestamp': String(timestamp),
    'x-did-signature': signer.sign(Buffer.from(text)),
    ...(audience !== undefined && { 'x-did-audience': audience }),
  }
}

/** Creates a proof of possession for `POST /did/challenge`. */
export function challengeAnswer(signer: Signer, { gateway, url, nonce }: Record<string, unknown>) {
  const domain = Buffer.from('\u00ffparley did challenge v1\n', 'latin1')
  const bytes = Buffer.concat([domain, Buffer.from(JSON.stringify([gateway, url, signer.did, nonce]))])
  return { did: signer.did, key: signer.publicKey, signature: signer.sign(bytes) }
}

export const seconds = () => Math.floor(Date.now() / 1000)

/** The first 16 bytes as a UUID. */
export function uuidOf(bytes: Uint8Array): string {
  const hex = Buffer.from(bytes).toString('hex')
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join(
    '-',
  )
}
