import { randomBytes, randomUUID } from 'node:crypto'
import { rename, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { IdentityProvider } from '../identity-provider/identity-provider.ts'

const client = { clientId: 'dev-client', clientName: 'Development', scope: 'agent:read agent:write' }

/**
 * `DATA_DIR/dev-client.json`: a ready client for whoever works on this machine. In production there is none, and one of
 * earlier development loses its secret.
 */
export async function provideDevClient(
  provider: IdentityProvider,
  options: { dataDir: string; production: boolean },
): Promise<void> {
  const file = path.join(options.dataDir, 'dev-client.json')
  if (options.production) {
    if (await isThere(file)) await endDevClient(provider, file)
    return
  }
  const { clientId, clientSecret } = await provider.ensureClient(client)
  const text = { client_id: clientId, client_secret: clientSecret, token_url: `${provider.issuer}/token` }
  await writeSecretFile(file, `${JSON.stringify(text, null, 2)}\n`)
}

async function endDevClient(provider: IdentityProvider, file: string): Promise<void> {
  await provider.ensureClient({ ...client, clientSecret: randomBytes(32).toString('base64url') })
  await rm(file, { force: true })
}

function isThere(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  )
}

/** Whole or not at all, and never readable by others, whatever mode an earlier file had. */
async function writeSecretFile(file: string, text: string): Promise<void> {
  const draft = `${file}.${randomUUID()}`
  await writeFile(draft, text, { mode: 0o600, flag: 'wx' })
  await rename(draft, file)
}
