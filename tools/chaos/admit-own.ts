import { readFileSync } from 'node:fs'
import path from 'node:path'
import { ClientToken } from '@parley/kit/auth/client-token'

/** The operator of a gateway with the embedded OAuth server. */
export function operatorClient(dataDir: string) {
  const text = readFileSync(path.join(dataDir, 'oauth', 'operator-client.json'), 'utf8')
  const file = JSON.parse(text) as { client_id: string; client_secret: string; token_url: string }
  return { clientId: file.client_id, clientSecret: file.client_secret, tokenUrl: file.token_url }
}

const limitMs = 60_000

/** Admits an agent that no supervisor runs as one of the deployment, once its registration has arrived. */
export async function admitOwn(url: string, slug: string, dataDir: string): Promise<void> {
  const tokens = new ClientToken({ ...operatorClient(dataDir), scope: 'agent:admin' })
  const until = Date.now() + limitMs
  for (;;) {
    const response = await fetch(`${url}/registry/agents/${slug}/admit`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await tokens.get()}`, 'content-type': 'application/json' },
      body: JSON.stringify({ own: true }),
    })
    if (response.ok) return
    if (Date.now() > until) throw new Error(`${slug} could not be admitted: ${await response.text()}`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
