import { request } from 'undici'
import { z } from 'zod'
import { boundedText } from './bounded-text.ts'

const metadata = z.object({
  issuer: z.string(),
  introspection_endpoint: z.url().optional(),
  token_endpoint: z.url().optional(),
  registration_endpoint: z.url().optional(),
})
export type ServerMetadata = z.infer<typeof metadata>

/**
 * RFC 8414: the metadata of an authorization server, from the well-known path before the issuer's own, else OpenID's
 * behind it.
 * @throws Error when neither answers, or the answer is about another issuer.
 */
export async function discover(issuer: string, timeoutMs = 2000): Promise<ServerMetadata> {
  const { origin, pathname } = new URL(issuer)
  const path = pathname === '/' ? '' : pathname.replace(/\/+$/, '')
  const addresses = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ]
  let failure: unknown
  for (const address of addresses) {
    try {
      return await fetchMetadata(address, issuer, timeoutMs)
    } catch (error) {
      failure = error
    }
  }
  throw new Error(`no OAuth server metadata at ${issuer}`, { cause: failure })
}

async function fetchMetadata(address: string, issuer: string, timeoutMs: number): Promise<ServerMetadata> {
  const response = await request(address, {
    headersTimeout: timeoutMs,
    bodyTimeout: timeoutMs,
    headers: { accept: 'application/json' },
  })
  const body = await boundedText(response.body)
  if (response.statusCode !== 200) throw new Error(`metadata answered ${response.statusCode}`)
  const found = metadata.parse(JSON.parse(body))
  if (found.issuer.replace(/\/+$/, '') !== issuer.replace(/\/+$/, '')) {
    throw new Error('metadata is about another issuer')
  }
  return found
}
