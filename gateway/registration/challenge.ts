import { randomBytes } from 'node:crypto'
import { type Challenge, challengePath, verifyAnswer } from '@parley/kit/did/challenge'
import { ParleyError } from '@parley/wire/errors'
import { z } from 'zod'
import type { GuardedClient } from './guarded-client.ts'
import { refused } from './registration-errors.ts'

const answer = z.object({
  did: z.string().max(512),
  key: z.string().max(64),
  signature: z.string().max(128),
})

export interface Challenged {
  url: string
  did: string
  /** Base58 of the keys of its document; one of them must have signed. */
  keys: readonly string[]
}

/**
 * Asks the agent to prove its key. Resolves with the key that signed; undefined when it has no such route: it is not one of ours.
 * @throws ParleyError InvalidTokenSignature when the answer is not signed by its key, or answers another challenge;
 * InvalidParams when there is no answer
 */
export async function challengeAgent(
  agent: Challenged,
  { outside, gatewayUrl }: { outside: GuardedClient; gatewayUrl: string },
): Promise<string | undefined> {
  const nonce = randomBytes(32).toString('base64url')
  const challenge: Challenge = { nonce, gateway: gatewayUrl, url: agent.url }
  const { status, json } = await outside.post(`${agent.url}${challengePath}`, challenge, 'The challenge')
  if (status === 404 || status === 405 || status === 501) return undefined
  if (status === 400)
    throw refused('challenge', 'The agent says that this is not its address (PUBLIC_URL of the agent)')
  if (status !== 200) throw refused('challenge', `The agent answered the challenge with HTTP ${status}`)
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
