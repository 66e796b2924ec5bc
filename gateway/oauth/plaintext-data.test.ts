import { globSync, readFileSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Log, makeLog } from '@parley/kit/process/log'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { startGatewayApp } from '../app.ts'
import { gatewayConfig } from '../config.ts'
import { gatewayMigrations } from '../store/sqlite/schema.ts'

const row = z.record(z.string(), z.union([z.string(), z.number()]))
const data = z
  .object({
    schemaVersion: z.number(),
    accessToken: z.string(),
    client: z.object({ id: z.string(), secret: z.string(), registrationAccessToken: z.string() }),
    files: z.record(z.string(), z.string()),
    rows: z.array(row),
  })
  .parse(JSON.parse(readFileSync(path.join(import.meta.dirname, 'fixtures', 'plaintext-data.json'), 'utf8')))
const { client, accessToken } = data

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(path.join(os.tmpdir(), 'parley-plaintext-'))
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }))
  await mkdir(path.join(dataDir, 'oauth'), { mode: 0o700 })
  for (const [name, text] of Object.entries(data.files))
    await writeFile(path.join(dataDir, name), text, { mode: 0o600 })
  using database = new DatabaseSync(path.join(dataDir, 'gateway.db'))
  database.exec('PRAGMA journal_mode = WAL')
  for (const sql of gatewayMigrations.slice(0, data.schemaVersion)) database.exec(sql)
  database.exec(`PRAGMA user_version = ${data.schemaVersion}`)
  for (const record of data.rows) {
    const names = Object.keys(record)
    const places = names.map(() => '?').join(', ')
    database
      .prepare(`INSERT INTO oauth_entries (${names.join(', ')}) VALUES (${places})`)
      .run(...Object.values(record))
  }
})

function start(lines: string[] = [], env: Record<string, string> = {}) {
  const destination = { write: (line: string) => void lines.push(line) }
  const log: Log = makeLog({ level: 'info', name: 'test', destination })
  return startGatewayApp({ settings: gatewayConfig({ DATA_DIR: dataDir, PORT: '0', ...env }), log })
}

const { jwks }: { jwks: { keys: { kid: string; d: string }[] } } = JSON.parse(
  data.files['oauth/oauth-keys.json'] ?? '',
)
const operatorSecret: string = JSON.parse(data.files['oauth/operator-client.json'] ?? '').client_secret
const secrets = [client.secret, operatorSecret, jwks.keys[0]?.d ?? '']

/** Files that contain a secret in plaintext, except those that people and programs read. */
function exposedFiles(): string[] {
  return globSync('{*.db*,oauth/oauth-keys.json}', { cwd: dataDir }).filter((name) => {
    const bytes = readFileSync(path.join(dataDir, name))
    return secrets.some((secret) => bytes.includes(secret))
  })
}

async function readsAsBefore(url: string): Promise<void> {
  const basic = (id: string, secret: string) => ({
    authorization: `Basic ${Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')}`,
  })
  const json = async (response: Response): Promise<unknown> => JSON.parse(await response.text())
  const introspected = await fetch(`${url}/oauth2/introspect`, {
    method: 'POST',
    headers: basic('dev-client', JSON.parse(data.files['dev-client.json'] ?? '').client_secret),
    body: new URLSearchParams({ token: accessToken }),
  })
  expect(await json(introspected)).toMatchObject({ active: true, client_id: 'dev-client' })
  const operator = await fetch(`${url}/oauth2/token`, {
    method: 'POST',
    headers: basic('operator', operatorSecret),
    body: new URLSearchParams({ grant_type: 'client_credentials', scope: 'agent:admin' }),
  })
  expect(await json(operator)).toMatchObject({ scope: 'agent:admin' })
  const registration = await fetch(`${url}/oauth2/register/${client.id}`, {
    headers: { authorization: `Bearer ${client.registrationAccessToken}` },
  })
  expect(await json(registration)).toMatchObject({ client_id: client.id, client_secret: client.secret })
  const published = await fetch(`${url}/oauth2/jwks`)
  expect(await json(published)).toMatchObject({ keys: [{ kid: jwks.keys[0]?.kid }] })
}

test('the data of a version without encryption is encrypted at the first start, and nothing is lost', async () => {
  expect(exposedFiles().sort()).toEqual(expect.arrayContaining(['gateway.db', 'oauth/oauth-keys.json']))
  const lines: string[] = []
  {
    await using gateway = await start(lines)
    await readsAsBefore(gateway.addresses.public)
    expect(exposedFiles()).toEqual([])
  }
  expect(exposedFiles()).toEqual([])
  expect(lines.join('')).toContain('stored OAuth records were encrypted')
  for (const secret of secrets) expect(lines.join('')).not.toContain(secret)
  await using gateway = await start(lines)
  await readsAsBefore(gateway.addresses.public)
})

test('a plaintext record that is inserted after the upgrade gives no access', async () => {
  await (await start())[Symbol.asyncDispose]()
  const payload = JSON.stringify({
    client_id: 'intruder',
    client_secret: 'x'.repeat(32),
    scope: 'agent:admin',
  })
  {
    using database = new DatabaseSync(path.join(dataDir, 'gateway.db'))
    database
      .prepare('INSERT INTO oauth_entries (model, id, payload) VALUES (?, ?, ?)')
      .run('Client', 'intruder', payload)
  }
  const lines: string[] = []
  await using gateway = await start(lines)
  const response = await fetch(`${gateway.addresses.public}/oauth2/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: 'intruder',
      client_secret: 'x'.repeat(32),
      scope: 'agent:admin',
    }),
  })
  expect(response.ok).toBe(false)
  expect(await response.text()).not.toContain('access_token')
  expect(lines.join('')).toContain('stored OAuth records cannot be decrypted')
})

test('a tampered record of the operator stops the start with its kind', async () => {
  await (await start())[Symbol.asyncDispose]()
  using database = new DatabaseSync(path.join(dataDir, 'gateway.db'))
  const stored = database.prepare("SELECT payload FROM oauth_entries WHERE model = 'Client' AND id = ?")
  const { payload } = stored.get('dev-client') ?? {}
  database
    .prepare("UPDATE oauth_entries SET payload = ? WHERE model = 'Client' AND id = 'operator'")
    .run(String(payload))
  database.close()
  await expect(start()).rejects.toThrow('A stored record (OAuth Client) cannot be decrypted')
})
