import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { keyPairFromSeed } from '@parley/kit/did/keys'
import { z } from 'zod'

const client = z.object({ client_id: z.string(), client_secret: z.string(), token_url: z.url() })

/** Matches the tokens that the benchmarks' OAuth server accepts: 43 characters, like 256 random bits in base64url. */
export const tokenPattern = /bench-token-\d{4}-[x]{26}/

export function tokenOf(number: number): string {
  return `bench-token-${String(number).padStart(4, '0')}-${'x'.repeat(26)}`
}

/** The client id for a token. Every client in the benchmarks is a DID with the same key. */
export const clientOf = (token: string) => `did:parley:bench:agent:${token.slice(12, 16)}`
export const benchKey = keyPairFromSeed(Buffer.alloc(32, 7))

/** Requests a token for a caller of agents from a gateway's own OAuth server, with the operator's client in its `DATA_DIR`. */
export async function operatorToken(dataDir: string): Promise<string> {
  const file = path.join(dataDir, 'oauth', 'operator-client.json')
  const { token_url: url, ...credentials } = client.parse(JSON.parse(await readFile(file, 'utf8')))
  const form = { grant_type: 'client_credentials', scope: 'agent:read agent:write', ...credentials }
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(form) })
  return z.object({ access_token: z.string() }).parse(await response.json()).access_token
}
