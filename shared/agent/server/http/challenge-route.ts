import { answerChallenge, challengePath } from '@parley/kit/did/challenge'
import type { KeyPair } from '@parley/kit/did/keys'
import { requireJson } from '@parley/kit/http/require-json'
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

interface Challenged {
  did: string
  /** The key of now. */
  key: KeyPair
  /** Addresses of this agent. */
  addresses: () => readonly string[]
}

/**
 * `POST /did/challenge {nonce, gateway, url}`: proves to a gateway that this agent has the key of its DID. Public; it
 * signs for its own addresses alone, so that nobody can hand its answer on as that of another.
 */
export function addChallengeRoute(app: FastifyInstance, { did, key, addresses }: Challenged): void {
  app.post(challengePath, async (request) => {
    requireJson(request)
    const asked = parseParams(challenge, parseJson((request.body as Buffer | undefined) ?? Buffer.alloc(0)))
    if (!addresses().map(normal).includes(normal(asked.url))) {
      const issues = [{ path: 'url', message: 'is not an address of this agent' }]
      throw new ParleyError('InvalidParams', { data: { issues } })
    }
    return answerChallenge(asked, did, key)
  })
}

/** Case of the host and a slash at the end make no other address. */
function normal(url: string): string {
  return (URL.parse(url)?.href ?? url).replace(/\/+$/, '')
}
