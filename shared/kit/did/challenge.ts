import bs58 from 'bs58'
import { readBase58 } from './base58.ts'
import { verifyEd25519 } from './ed25519.ts'
import type { KeyPair } from './keys.ts'
import { readSignature } from './signature.ts'

/**
 * Challenge of a gateway to an agent that registers without a signed request. The agent signs the gateway and its own address,
 * so that the answer is invalid for another gateway, for another address, and a second time.
 */
export interface Challenge {
  /** 16 to 64 random bytes, base64url; accepted once. */
  nonce: string
  /** The gateway's address (PUBLIC_URL). */
  gateway: string
  /** The address that the agent registers with. */
  url: string
}

export interface ChallengeAnswer {
  did: string
  /** The signing key, base58. */
  key: string
  /** The signature, base58. */
  signature: string
}

export const challengePath = '/did/challenge'

/**
 * Domain separation: 0xFF never occurs in UTF-8, so neither a signed text part of an artifact nor a signed request can be used
 * as an answer.
 */
const domain = Buffer.from('\u00ffparley did challenge v1\n', 'latin1')

export function answerChallenge(challenge: Challenge, did: string, key: KeyPair): ChallengeAnswer {
  const signature = bs58.encode(key.sign(challengeBytes(challenge, did)))
  return { did, key: key.publicKeyBase58, signature }
}

/** Whether the key (base58) signed this challenge for this DID; never throws. */
export function verifyAnswer(challenge: Challenge, answer: ChallengeAnswer, publicKey: string): boolean {
  const [key, signature] = [readBase58(publicKey, 32), readSignature(answer.signature)]
  if (key === undefined || signature === undefined || answer.key !== publicKey) return false
  return verifyEd25519(key, challengeBytes(challenge, answer.did), signature)
}

/** JSON makes the boundaries of the fields unambiguous. */
function challengeBytes({ nonce, gateway, url }: Challenge, did: string): Buffer {
  return Buffer.concat([domain, Buffer.from(JSON.stringify([gateway, url, did, nonce]))])
}
