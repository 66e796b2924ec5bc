/**
 * A gateway with an agent at `UPSTREAM` that has a skill for numbers, and `AGENTS` other agents at the same address. Without
 * `OAUTH`, it runs its own OAuth server. With `OTEL_…`, it exports traces. With `EXCHANGE=none`, the agents receive the callers' tokens.
 * The first `TAUGHT` of the other agents have training examples. The other agents have `SKILLS` skills each. With `ENCODER=yes`, agents are
 * ranked by meaning too, and the process is ready when all of them are embedded.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { SentenceEncoder } from '@parley/encoder/sentence-encoder'
import type { AddInterface } from '@parley/gateway/add-routes'
import { startGatewayApp } from '@parley/gateway/app'
import { gatewayConfig } from '@parley/gateway/config'
import type { TokenExchange } from '@parley/gateway/oauth/token-exchange'
import { makeLog } from '@parley/kit/process/log'
import { startTelemetry } from '@parley/kit/telemetry/telemetry'
import { examplesFor } from '../support/training-examples.ts'
import { type VariedAgent, variedAgents } from '../support/varied-agents.ts'

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
let routing: Parameters<AddInterface>[1]['routing'] | undefined
const encoder = process.env['ENCODER'] === 'yes' ? new SentenceEncoder() : undefined
const gateway = await startGatewayApp({
  settings,
  encoder,
  testInterface: (_, parts) => {
    routing = parts.routing
  },
  log: makeLog({ level: 'error', name: 'gateway' }),
  ...(process.env['EXCHANGE'] === 'none' && { tokenExchange: noExchange }),
})

const skillsEach = Number(process.env['SKILLS'] ?? 1)

async function register(name: string, description: string, skill: string, tags: string[]): Promise<string> {
  const { id } = await gateway.registry.register({
    name,
    description,
    url: process.env['UPSTREAM'] ?? '',
    card: { name, description },
    skills: Array.from({ length: skillsEach }, (_, at) => ({
      id: `fox-${at}`,
      name: at === 0 ? skill : `${skill} ${at}`,
      description: at === 0 ? description : `${description} (${at})`,
      tags,
      input_modes: ['text/plain'],
      output_modes: ['text/plain'],
    })),
    owner: 'upstream',
    origin: 'supervised',
    verified: true,
    admitted: true,
    admittedBy: 'supervisor',
  })
  return id
}

/** Gives the agents training examples, as if they had completed tasks that were rated well. */
async function teach(taught: readonly VariedAgent[], ids: readonly string[]): Promise<void> {
  const examples = taught.flatMap((agent, at) => examplesFor(ids[at] ?? '', agent, Date.now()))
  await Promise.all(examples.map(async (example) => routing?.store.saveTrainingExample(example)))
  await routing?.feedback.load()
}

await register('upstream', 'Finds where the quick brown fox jumps over the lazy dog', 'Fox', ['fox', 'dog'])
const varied = variedAgents(7)
const others = Array.from({ length: Number(process.env['AGENTS'] ?? 0) }, (_, number) => varied(number))
const ids = await Promise.all(others.map(({ name, description }) => register(name, description, name, [])))
await teach(others.slice(0, Number(process.env['TAUGHT'] ?? 0)), ids)
await routing?.meaning?.ready()
process.stderr.write(`${JSON.stringify({ address: gateway.addresses.local })}\n`)
process.on('SIGTERM', () => {
  void gateway[Symbol.asyncDispose]()
    .then(() => encoder?.[Symbol.asyncDispose]())
    .then(() => telemetry[Symbol.asyncDispose]())
    .then(() => rm(dataDir, { recursive: true, force: true }))
    .then(() => process.exit(0))
})
