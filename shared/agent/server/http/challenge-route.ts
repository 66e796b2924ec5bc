import { answerChallenge, challengeAnswer, challengePath } from '@parley/kit/did/challenge'
import type { KeyPair } from '@parley/kit/did/keys'
import { bodyOf, requireJson } from '@parley/kit/http/request-body'
import type { OperationDescription } from '@parley/kit/http/route-description'
import { parseParams } from '@parley/wire/codecs/parley/params'
import { ParleyError } from '@parley/wire/errors'
import { parseJson } from '@parley/wire/jsonrpc/parse-json'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'

const address = z.url({ protocol: /^https?$/ }).max(2048)
const challenge = z.object({
  nonce: z.string().regex(/^[\w-]{22,86}$/, 'must be 16 to 64 bytes in base64url'),
  gateway: address,
  url: address,
})

const api: OperationDescription = {
  summary: 'Prove to a gateway that the agent holds the key of its DID',
  tag: 'identity',
  access: 'public',
  body: { json: challenge },
  responses: { 200: { description: 'The signed challenge', json: challengeAnswer } },
}

interface ChallengeOptions {
  did: string
  /** The current key. */
  key: KeyPair
  /** Returns this agent's addresses. */
  addresses: () => readonly string[]
}

/**
 * Adds `POST /did/challenge {nonce, gateway, url}`, which proves to a gateway that this agent holds its DID's key
 * (spec/gateway-registry.md#registration). It is public. The agent signs only for its own addresses, so its answer cannot be
 * presented as another agent's answer.
 */
export function addChallengeRoute(app: FastifyInstance, { did, key, addresses }: ChallengeOptions): void {
  app.post(challengePath, { config: { api } }, async (request) => {
    requireJson(request)
    const body = parseParams(challenge, parseJson(bodyOf(request)))
    if (!addresses().map(normal).includes(normal(body.url))) {
      const issues = [{ path: 'url', message: 'is not an address of this agent' }]
      throw new ParleyError('InvalidParams', { data: { issues } })
    }
    return answerChallenge(body, did, key)
  })
}

/** Normalizes the case of the host and a trailing slash. */
function normal(url: string): string {
  return (URL.parse(url)?.href ?? url).replace(/\/+$/, '')
}
