import { randomBytes, randomUUID } from 'node:crypto'
import { rename, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Log } from '@parley/kit/process/log'
import { ExposedSecretFile, readSecretFile } from '@parley/kit/process/secret-file'
import type { EnsureClient } from './clients.ts'
import type { IdentityProvider } from './identity-provider.ts'

const operator = {
  clientId: 'operator',
  clientName: 'Operator',
  scope: 'agent:read agent:write agent:admin',
}
const client = { clientId: 'dev-client', clientName: 'Development', scope: 'agent:read agent:write' }

/**
 * `DATA_DIR/dev-client.json`: a ready client for whoever works on this machine. In production there is none, and one of
 * earlier development loses its secret.
 */
export async function provideDevClient(
  provider: IdentityProvider,
  options: { dataDir: string; production: boolean; log: Log },
): Promise<void> {
  const file = path.join(options.dataDir, 'dev-client.json')
  if (options.production) {
    if (await isThere(file)) await endDevClient(provider, file)
    return
  }
  // A client of development is closed to others again; its secret stays.
  if (await isExposed(file))
    options.log.warn({ file }, 'the file was open to other users of this machine: its mode is 0600 again')
  await writeClient(provider, client, file)
}

/**
 * `DATA_DIR/oauth/operator-client.json`: the operator's client, with `agent:admin`. Whoever reads that folder is the
 * operator: it holds the signing keys too.
 * @throws ExposedSecretFile
 */
export async function provideOperatorClient(provider: IdentityProvider, dataDir: string): Promise<void> {
  const file = path.join(dataDir, 'oauth', 'operator-client.json')
  if (await isThere(file)) await readSecretFile(file)
  await writeClient(provider, operator, file)
}

async function writeClient(provider: IdentityProvider, asked: EnsureClient, file: string): Promise<void> {
  const { clientId, clientSecret } = await provider.ensureClient(asked)
  const text = { client_id: clientId, client_secret: clientSecret, token_url: `${provider.issuer}/token` }
  await writeSecretFile(file, `${JSON.stringify(text, null, 2)}\n`)
}

async function endDevClient(provider: IdentityProvider, file: string): Promise<void> {
  await provider.ensureClient({ ...client, clientSecret: randomBytes(32).toString('base64url') })
  await rm(file, { force: true })
}

async function isExposed(file: string): Promise<boolean> {
  return readSecretFile(file).then(
    () => false,
    (error: unknown) => error instanceof ExposedSecretFile,
  )
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
