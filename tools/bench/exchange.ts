/**
 * CPU cost of token exchange in the gateway's process: an exchange, a cached one, and the introspection of the exchanged
 * token compared with that of a stored one. The exchange at the token endpoint includes the client's part of the request.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { resolveAddresses } from '@parley/gateway/addresses'
import { gatewayConfig } from '@parley/gateway/config'
import { openGatewayState } from '@parley/gateway/gateway-state'
import { startOAuth } from '@parley/gateway/oauth/start-oauth'
import { hashOf } from '@parley/gateway/oauth/token-exchange'
import { createServer } from '@parley/kit/http/server'
import { makeLog } from '@parley/kit/process/log'
import { createMetrics } from '@parley/kit/process/metrics'
import { z } from 'zod'
import { median, quick, rounds } from './support/measure.ts'
import { expectAtMost, printTable, saveResults } from './support/report.ts'

const tokenResponse = z.object({ access_token: z.string() })
const operations = quick ? 500 : 3000

await using stack = new AsyncDisposableStack()
const dir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
stack.defer(() => rm(dir, { recursive: true, force: true }))
const { config, secrets } = gatewayConfig({ DATA_DIR: dir, PORT: '0' })
const log = makeLog({ level: 'silent', name: 'bench' })
const options = { config, storeUrl: undefined, supervises: false, masterKey: secrets.masterKey, log }
const state = stack.use(await openGatewayState(options))
const addresses = await resolveAddresses(config)
const agents = {
  isTrusted: () => false,
  namesOf: () => [],
  isBarred: () => false,
  mayAct: () => true,
  isQuarantined: () => false,
}
const trust = { identity: undefined, keysOf: async () => [] }
const oauth = stack.use(await startOAuth({ config, secrets, state, addresses, log, agents, trust }))
const { provider, tokenExchange: exchange } = oauth
if (provider === undefined) throw new Error('the embedded OAuth server is not in use')
const app = createServer({ log, metrics: createMetrics() })
stack.defer(() => app.close())
provider.mount(app)
await app.listen({ port: addresses.port })

const scope = 'agent:read agent:write'
const caller = await provider.ensureClient({ clientId: 'caller', clientName: 'Caller', scope })
const agent = await provider.ensureClient({
  clientId: 'did:key:agent',
  clientName: 'Agent',
  scope,
  introspection: true,
})

/** Requests a token. Returns the access token. */
async function requestToken(client: typeof caller, form: Record<string, string>): Promise<string> {
  const credentials = [client.clientId, client.clientSecret].map(encodeURIComponent).join(':')
  const headers = { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` }
  const request = { method: 'POST', headers, body: new URLSearchParams(form) }
  const response = await fetch(`${provider?.issuer}/token`, request)
  const { access_token: token } = tokenResponse.parse(await response.json())
  return token
}

const text = await requestToken(caller, { grant_type: 'client_credentials' })
const subject = { text, hash: hashOf(text), introspection: await provider.introspect(text) }
const toAgent = (n: number) => ({ id: 'agent', resource: `did:key:agent${n}` })
const exchanged = await exchange.forAgent(subject, toAgent(0))

/** Returns the CPU time of one operation in microseconds. */
async function cpuMicros(operation: (n: number) => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage()
  for (let n = 0; n < operations; n += 1) await operation(n)
  const { user, system } = process.cpuUsage(before)
  return (user + system) / operations
}

let resource = 1
const form = {
  grant_type: 'urn:ietf:params:oauth:grant-type:token-exchange',
  subject_token: text,
  subject_token_type: 'urn:ietf:params:oauth:token-type:access_token',
  resource: addresses.public,
}
const subjects: Record<string, (n: number) => Promise<unknown>> = {
  exchange: () => exchange.forAgent(subject, toAgent(resource++)),
  'cached exchange': () => exchange.forAgent(subject, toAgent(0)),
  'introspection of an exchanged token': () => provider.introspect(exchanged),
  'introspection of a stored token': () => provider.introspect(text),
  'exchange at the token endpoint': () => requestToken(agent, form),
}

const all: Record<string, number[]> = {}
for (const operation of Object.values(subjects)) await cpuMicros(operation)
for (let round = 0; round < rounds; round += 1)
  for (const [name, operation] of Object.entries(subjects))
    (all[name] ??= []).push(await cpuMicros(operation))
const medians = Object.fromEntries(Object.entries(all).map(([name, found]) => [name, median(found)]))
printTable(
  ['operation', 'CPU µs'],
  Object.entries(medians).map(([name, micros]) => [name, micros.toFixed(1)]),
)
console.log(`length of an exchanged token: ${exchanged.length} characters`)
expectAtMost('CPU µs of one exchange', medians['exchange'] ?? Number.NaN, 300)
await saveResults('exchange', { medians, rounds: all })
