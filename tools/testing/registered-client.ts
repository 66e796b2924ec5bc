import { readFile } from 'node:fs/promises'
import path from 'node:path'

/** Registers an OAuth client at the gateway and requests a token for it. */
export async function registeredClient(
  name: string,
  { gatewayUrl, dataDir }: { gatewayUrl: string; dataDir: string },
): Promise<{ id: string; token: string }> {
  const initial = await readFile(path.join(dataDir, 'oauth', 'initial-access-token'), 'utf8')
  const registered = await fetch(`${gatewayUrl}/oauth2/register`, {
    method: 'POST',
    headers: { authorization: `Bearer ${initial.trim()}`, 'content-type': 'application/json' },
    body: JSON.stringify({ client_name: name, grant_types: ['client_credentials'] }),
  })
  const client = (await registered.json()) as { client_id: string; client_secret: string }
  const credentials = [client.client_id, client.client_secret].map(encodeURIComponent).join(':')
  const answer = await fetch(`${gatewayUrl}/oauth2/token`, {
    method: 'POST',
    headers: { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` },
    body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'agent:read agent:write' }),
  })
  const { access_token: token } = (await answer.json()) as { access_token: string }
  return { id: client.client_id, token }
}
