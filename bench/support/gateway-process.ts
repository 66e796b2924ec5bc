/** A gateway with one agent, at `UPSTREAM`, that does whatever anybody asks about numbers. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { startGatewayApp } from '../../gateway/app.ts'
import { gatewayConfig } from '../../gateway/config.ts'
import { makeLog } from '../../shared/process/log.ts'

const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-gateway-'))
const oauth = process.env['OAUTH'] ?? ''
const settings = gatewayConfig({
  PORT: '0',
  DATA_DIR: dataDir,
  RATE_LIMIT_PER_MINUTE: '0',
  LOG_LEVEL: 'error',
  OAUTH_ISSUER: oauth,
  OAUTH_INTROSPECTION_URL: `${oauth}/introspect`,
  OAUTH_CLIENT_METADATA_URL: `${oauth}/clients/{client_id}`,
  OAUTH_CLIENT_ID: 'gateway',
  OAUTH_CLIENT_SECRET: 'secret',
})
const gateway = await startGatewayApp({ settings, log: makeLog({ level: 'error', name: 'gateway' }) })
const description = 'Tells where the quick brown fox jumps over the lazy dog'
await gateway.registry.register({
  name: 'upstream',
  description,
  url: process.env['UPSTREAM'] ?? '',
  card: { name: 'upstream', description },
  skills: [
    {
      id: 'fox',
      name: 'Fox',
      description,
      tags: ['fox', 'dog'],
      input_modes: ['text/plain'],
      output_modes: ['text/plain'],
    },
  ],
  owner: 'upstream',
  origin: 'supervised',
  verified: true,
  admitted: true,
  admittedBy: 'supervisor',
})
process.stderr.write(`${JSON.stringify({ address: gateway.addresses.local })}\n`)
process.on('SIGTERM', () => {
  void gateway[Symbol.asyncDispose]()
    .then(() => rm(dataDir, { recursive: true, force: true }))
    .then(() => process.exit(0))
})
