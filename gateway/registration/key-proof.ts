import { randomBytes } from 'node:crypto'
import { readBase58 } from '@parley/kit/did/base58'
import { type Challenge, challengePath, verifyAnswer } from '@parley/kit/did/challenge'
import { verifySigned } from '@parley/kit/did/signature'
import { ParleyError } from '@parley/wire/errors'
import { z } from 'zod'
import type { GuardedClient } from './guarded-client.ts'
import { registrationError } from './registration-errors.ts'

const answer = z.object({
  did: z.string().max(512),
  key: z.string().max(64),
  signature: z.string().max(128),
})

export interface ChallengedAgent {
  url: string
  did: string
  /** The keys of its DID document in base58, one of which must sign. */
  keys: readonly string[]
}

/**
 * Challenges the agent to prove its key. Resolves with the key that signed the challenge, or with undefined if the agent
 * has no challenge route.
 * @throws ParleyError InvalidTokenSignature for a wrong signature or the answer to another challenge, InvalidParams if
 * there is no answer
 */
export async function challengeAgent(
  agent: ChallengedAgent,
  { client, gatewayUrl }: { client: GuardedClient; gatewayUrl: string },
): Promise<string | undefined> {
  const nonce = randomBytes(32).toString('base64url')
  const challenge: Challenge = { nonce, gateway: gatewayUrl, url: agent.url }
  const { status, json } = await client.post(`${agent.url}${challengePath}`, challenge, 'The challenge')
  if (status === 404 || status === 405 || status === 501) return undefined
  if (status === 400)
    throw registrationError('challenge', 'The agent reports another address (check PUBLIC_URL of the agent)')
  if (status !== 200)
    throw registrationError('challenge', `The agent answered the challenge with HTTP ${status}`)
  const given = answer.safeParse(json).data
  const proven =
    given?.did === agent.did
      ? agent.keys.find((publicKey) => verifyAnswer(challenge, given, publicKey))
      : undefined
  if (proven !== undefined) return proven
  throw new ParleyError('InvalidTokenSignature', {
    message: 'The agent did not answer the challenge with the key of its DID',
    data: { reason: 'crypto_mismatch' },
  })
}

export interface SignedRequest {
  did: string
  /** The value of the header. */
  timestamp: unknown
  /** The value of the header. */
  audience?: unknown
  body: Uint8Array
  /** Present if the signature was verified with the key registered with the OAuth server. */
  signature: Uint8Array | undefined
}

/**
 * Returns the key (base58) that signed the request. The document may list keys other than that of the OAuth client.
 */
export function findSigningKey(
  keys: readonly string[],
  { did, timestamp, audience, body, signature }: SignedRequest,
): string | undefined {
  if (signature === undefined) return undefined
  const bound = typeof audience === 'string' ? { audience } : {}
  const signed = { ...bound, did, body: Buffer.from(body).toString('utf8'), timestamp: Number(timestamp) }
  return keys.find((base58) => {
    const key = readBase58(base58, 32)
    return key !== undefined && verifySigned(signed, signature, key)
  })
}
