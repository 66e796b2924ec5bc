import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { ClientToken } from '@parley/kit/auth/client-token'

const admitTimeoutMs = 60_000

interface ClientFile {
  client_id: string
  client_secret: string
  token_url: string
}

/** Reads an OAuth client that a gateway has written to its DATA_DIR. */
export function readClient(dataDir: string, ...file: string[]) {
  const read = JSON.parse(readFileSync(path.join(dataDir, ...file), 'utf8')) as ClientFile
  return { clientId: read.client_id, clientSecret: read.client_secret, tokenUrl: read.token_url }
}

/** The operator of a gateway with the embedded OAuth server. */
export const operatorClient = (dataDir: string) => readClient(dataDir, 'oauth', 'operator-client.json')

/** Waits until an unsupervised agent has registered, then admits it to the deployment. */
export async function admitOwn(url: string, slug: string, dataDir: string): Promise<void> {
  const tokens = new ClientToken({ ...operatorClient(dataDir), scope: 'agent:admin' })
  const end = Date.now() + admitTimeoutMs
  for (;;) {
    const response = await fetch(`${url}/registry/agents/${slug}/admit`, {
      method: 'POST',
      headers: { authorization: `Bearer ${await tokens.get()}`, 'content-type': 'application/json' },
      body: JSON.stringify({ own: true }),
    })
    if (response.ok) return
    if (Date.now() > end) throw new Error(`${slug} could not be admitted: ${await response.text()}`)
    await wait(100)
  }
}
