import bs58 from 'bs58'
import { z } from 'zod'
import { readBase58 } from './base58.ts'
import { verifyEd25519 } from './ed25519.ts'
import type { KeyPair } from './keys.ts'
import { readSignature } from './signature.ts'

/**
 * A gateway's challenge to an agent that registers without a signed request. The agent signs the gateway's address
 * and its own, so the answer cannot be used for another gateway, for another address, or a second time.
 */
export interface Challenge {
  /** 16 to 64 random bytes, base64url; accepted only once. */
  nonce: string
  /** The gateway's address (PUBLIC_URL). */
  gateway: string
  /** The address with which the agent registers. */
  url: string
}

export interface ChallengeAnswer {
  did: string
  /** The signing key, base58. */
  key: string
  /** The signature, base58. */
  signature: string
}

/** The answer to `POST /did/challenge`. */
export const challengeAnswer = z.object({
  did: z.string(),
  key: z.string(),
  signature: z.string(),
}) satisfies z.ZodType<ChallengeAnswer>

export const challengePath = '/did/challenge'

/**
 * Provides domain separation: 0xFF never occurs in UTF-8, so neither a signed text part of an artifact nor a signed
 * request can be used as an answer.
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

const startDomain = Buffer.from('\u00ffparley supervised start v1\n', 'latin1')

/** Signs the nonce of a supervisor, so that a supervised process proves that it has the key of its DID. */
export function signStart(nonce: string, did: string, key: KeyPair): string {
  return bs58.encode(key.sign(startBytes(nonce, did)))
}

/** Whether the key (base58) signed this nonce for this DID; never throws. */
export function verifyStart(
  nonce: string,
  did: string,
  proof: { publicKey: string; signature: string },
): boolean {
  const [key, signature] = [readBase58(proof.publicKey, 32), readSignature(proof.signature)]
  return key !== undefined && signature !== undefined && verifyEd25519(key, startBytes(nonce, did), signature)
}

const startBytes = (nonce: string, did: string) =>
  Buffer.concat([startDomain, Buffer.from(JSON.stringify([nonce, did]))])

/** Encodes the fields as JSON, which makes their boundaries unambiguous. */
function challengeBytes({ nonce, gateway, url }: Challenge, did: string): Buffer {
  return Buffer.concat([domain, Buffer.from(JSON.stringify([gateway, url, did, nonce]))])
}
