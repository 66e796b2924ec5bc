/**
 * A gateway with an agent at `UPSTREAM` that has a skill for numbers, and `AGENTS` other agents at the same address. Without
 * `OAUTH`, it runs its own OAuth server. With `OTEL_…`, it exports traces. With `EXCHANGE=none`, the agents receive the callers' tokens.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { startGatewayApp } from '@parley/gateway/app'
import { gatewayConfig } from '@parley/gateway/config'
import type { TokenExchange } from '@parley/gateway/oauth/token-exchange'
import { makeLog } from '@parley/kit/process/log'
import { startTelemetry } from '@parley/kit/telemetry/telemetry'
import { variedAgents } from '../support/varied-agents.ts'

const dataDir = process.env['DATA_DIR'] ?? (await mkdtemp(path.join(tmpdir(), 'parley-bench-gateway-')))
const oauth = process.env['OAUTH']
const settings = gatewayConfig({
  PORT: '0',
  DATA_DIR: dataDir,
  RATE_LIMIT_PER_MINUTE: '0',
  LOG_LEVEL: 'error',
  ...Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('OTEL_'))),
  ...(oauth === undefined
    ? { PARLEY_EMBEDDED_OAUTH: 'yes' }
    : {
        OAUTH_ISSUER: oauth,
        OAUTH_INTROSPECTION_URL: `${oauth}/introspect`,
        OAUTH_CLIENT_METADATA_URL: `${oauth}/clients/{client_id}`,
        OAUTH_CLIENT_ID: 'gateway',
        OAUTH_CLIENT_SECRET: 'secret',
      }),
})
const noExchange: TokenExchange = {
  endsWithSubject: true,
  forAgent: async ({ text }) => text,
  forLedger: async ({ text }) => text,
}
const telemetry = await startTelemetry(settings.secrets.telemetry, { name: 'gateway', version: '' })
const gateway = await startGatewayApp({
  settings,
  log: makeLog({ level: 'error', name: 'gateway' }),
  ...(process.env['EXCHANGE'] === 'none' && { tokenExchange: noExchange }),
})

async function register(name: string, description: string, skill: string, tags: string[]): Promise<void> {
  await gateway.registry.register({
    name,
    description,
    url: process.env['UPSTREAM'] ?? '',
    card: { name, description },
    skills: [
      {
        id: 'fox',
        name: skill,
        description,
        tags,
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
}

await register('upstream', 'Finds where the quick brown fox jumps over the lazy dog', 'Fox', ['fox', 'dog'])
const varied = variedAgents(7)
const others = Array.from({ length: Number(process.env['AGENTS'] ?? 0) }, (_, number) => varied(number))
await Promise.all(others.map(({ name, description }) => register(name, description, name, [])))
process.stderr.write(`${JSON.stringify({ address: gateway.addresses.local })}\n`)
process.on('SIGTERM', () => {
  void gateway[Symbol.asyncDispose]()
    .then(() => telemetry[Symbol.asyncDispose]())
    .then(() => rm(dataDir, { recursive: true, force: true }))
    .then(() => process.exit(0))
})
