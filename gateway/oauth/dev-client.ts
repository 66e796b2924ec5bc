import { randomBytes } from 'node:crypto'
import { rm, stat } from 'node:fs/promises'
import path from 'node:path'
import type { Log } from '@parley/kit/process/log'
import { ExposedSecretFile, readSecretFile, replaceSecretFile } from '@parley/kit/process/secret-file'
import type { ManagedClient } from './clients.ts'
import type { IdentityProvider } from './identity-provider.ts'

const operator = {
  clientId: 'operator',
  clientName: 'Operator',
  scope: 'agent:read agent:write agent:admin',
}
const client = { clientId: 'dev-client', clientName: 'Development', scope: 'agent:read agent:write' }

/**
 * Creates `DATA_DIR/dev-client.json` with credentials for development on this machine. In production, the file is removed
 * and the client gets a new secret.
 */
export async function provideDevClient(
  provider: IdentityProvider,
  options: { dataDir: string; production: boolean; log: Log },
): Promise<void> {
  const file = path.join(options.dataDir, 'dev-client.json')
  if (options.production) {
    if (await exists(file)) await revokeDevClient(provider, file)
    return
  }
  // The development client keeps its secret even if its file was exposed. The file is made private again.
  if (await isExposed(file))
    options.log.warn({ file }, 'the file was readable by other users: its mode is set to 0600')
  await writeClient(provider, client, file)
}

/**
 * Creates `DATA_DIR/oauth/operator-client.json` with the operator's client, which has `agent:admin`. The folder also
 * contains the signing keys, so read access to it implies operator rights.
 * @throws ExposedSecretFile
 */
export async function provideOperatorClient(provider: IdentityProvider, dataDir: string): Promise<void> {
  const file = path.join(dataDir, 'oauth', 'operator-client.json')
  if (await exists(file)) await readSecretFile(file)
  await writeClient(provider, operator, file)
}

async function writeClient(provider: IdentityProvider, managed: ManagedClient, file: string): Promise<void> {
  const { clientId, clientSecret } = await provider.ensureClient(managed)
  const text = { client_id: clientId, client_secret: clientSecret, token_url: `${provider.issuer}/token` }
  await replaceSecretFile(file, `${JSON.stringify(text, null, 2)}\n`)
}

async function revokeDevClient(provider: IdentityProvider, file: string): Promise<void> {
  await provider.ensureClient({ ...client, clientSecret: randomBytes(32).toString('base64url') })
  await rm(file, { force: true })
}

async function isExposed(file: string): Promise<boolean> {
  return readSecretFile(file).then(
    () => false,
    (error: unknown) => error instanceof ExposedSecretFile,
  )
}

function exists(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  )
}
