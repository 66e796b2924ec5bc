import bs58 from 'bs58'
import { readBase58 } from './base58.ts'
import { verifyEd25519 } from './ed25519.ts'
import type { KeyPair } from './keys.ts'
import { readSignature } from './signature.ts'

/**
 * What a gateway asks of an agent that registers without a signed request. The agent signs who asks and where it is
 * asked: an answer is of no use to another gateway, for another address, or a second time.
 */
export interface Challenge {
  /** 16 to 64 random bytes, base64url; taken once. */
  nonce: string
  /** The gateway's address (PUBLIC_URL). */
  gateway: string
  /** The address under which the agent is being registered. */
  url: string
}

export interface ChallengeAnswer {
  did: string
  /** Base58 of the key that signed. */
  key: string
  /** Base58 of the signature. */
  signature: string
}

export const challengePath = '/did/challenge'

/**
 * 0xFF stands in no UTF-8 text: neither a text that an agent was brought to say, which it signs as a part of its
 * artifact, nor a signed request can ever be an answer.
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

/** A list in JSON: each field ends where it ends. */
function challengeBytes({ nonce, gateway, url }: Challenge, did: string): Buffer {
  return Buffer.concat([domain, Buffer.from(JSON.stringify([gateway, url, did, nonce]))])
}
