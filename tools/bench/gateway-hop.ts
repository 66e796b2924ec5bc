/**
 * Cost of the gateway: calls sent directly, through `/agents/{slug}/` and through `POST /` (for a known task, and for a
 * new message with its negotiation), compared with @fastify/http-proxy, a forwarder on undici, and nginx. CPU time is
 * measured for the server in the middle, which has its own OAuth server, or introspects every token at an external
 * provider. The agent and the provider run on the other core.
 */
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { NginxProcess } from './servers/nginx-process.ts'
import { ServerProcess } from './servers/server-process.ts'
import { sendParams } from './support/agent-under-test.ts'
import { httpRequest } from './support/load.ts'
import { cores } from './support/machine.ts'
import { measure } from './support/measure.ts'
import { checkTarget, expectAtMost, printFigures, saveResults } from './support/report.ts'
import { inRounds, type Subject } from './support/rounds.ts'
import { operatorToken, tokenOf } from './support/tokens.ts'

const mustHold = '"kind":"task"'
const externalToken = tokenOf(0)
const taskId = randomUUID()
const get = { jsonrpc: '2.0', id: '1', method: 'tasks/get', params: { task_id: taskId } }
const send = () => ({ jsonrpc: '2.0', id: '1', method: 'message/send', params: sendParams() })
type Requests = (token?: string) => string[]
const headersWith = (token: string) => ({ Authorization: `Bearer ${token}` })
const gets =
  (at: string): Requests =>
  (token = externalToken) => [httpRequest({ path: at, headers: headersWith(token), body: get })]
const sends =
  (at: string): Requests =>
  (token = externalToken) =>
    Array.from({ length: 200 }, () => httpRequest({ path: at, headers: headersWith(token), body: send() }))

const program = (name: string) => `${import.meta.dirname}/servers/${name}-process.ts`
const upstreamOn = (core: number) => ServerProcess.start({ args: [program('upstream')], core })

const direct: Subject = async (generator) => {
  await using upstream = await upstreamOn(cores.server)
  return (await measure(generator, upstream, { requests: gets('/')(), mustHold })).figures
}

/** The gateway with its own OAuth server. */
const gateway =
  (requests: Requests): Subject =>
  async (generator) => {
    await using upstream = await upstreamOn(cores.load)
    await using dataDir = await mkdtempDisposable(path.join(tmpdir(), 'parley-bench-'))
    await using server = await gatewayWith({ UPSTREAM: upstream.address, DATA_DIR: dataDir.path })
    const token = await operatorToken(dataDir.path)
    return (await measure(generator, server, { requests: requests(token), mustHold })).figures
  }

const gatewayWithProvider =
  (requests: Requests): Subject =>
  async (generator) => {
    await using upstream = await upstreamOn(cores.load)
    await using oauth = await ServerProcess.start({ args: [program('oauth')], core: cores.load })
    await using server = await gatewayWith({ UPSTREAM: upstream.address, OAUTH: oauth.address })
    return (await measure(generator, server, { requests: requests(), mustHold })).figures
  }

function gatewayWith(env: Record<string, string>): Promise<ServerProcess> {
  const args = ['--disable-warning=ExperimentalWarning', program('gateway')]
  return ServerProcess.start({ args, core: cores.server, env })
}

const forwarder =
  (kind: string): Subject =>
  async (generator) => {
    await using upstream = await upstreamOn(cores.load)
    const env = { UPSTREAM: upstream.address, FORWARDER: kind }
    await using server = await ServerProcess.start({ args: [program('forwarder')], core: cores.server, env })
    return (await measure(generator, server, { requests: gets('/agents/upstream/')(), mustHold })).figures
  }

const nginx: Subject = async (generator) => {
  await using upstream = await upstreamOn(cores.load)
  await using server = await NginxProcess.start(upstream.address, cores.server)
  return (await measure(generator, server, { requests: gets('/agents/upstream/')(), mustHold })).figures
}

const hasNginx = spawnSync('nginx', ['-v']).error === undefined
if (!hasNginx) console.log('nginx is not installed and not measured.')
const proxy = 'bare @fastify/http-proxy'
const found = await inRounds({
  'agent without gateway': direct,
  'gateway, /agents/{slug}/': gateway(gets('/agents/upstream/')),
  'gateway, POST /, tasks/get': gateway(gets('/')),
  'gateway, POST /, message/send': gateway(sends('/')),
  'gateway, /agents/{slug}/, message/send': gateway(sends('/agents/upstream/')),
  'external provider, /agents/{slug}/': gatewayWithProvider(gets('/agents/upstream/')),
  'external provider, POST /, message/send': gatewayWithProvider(sends('/')),
  [proxy]: forwarder('http-proxy'),
  'bare undici forwarder': forwarder('undici'),
  ...(hasNginx && { nginx }),
})
printFigures(found.medians)
const cpuOf = (name: string) => found.medians[name]?.cpuMicrosPerRequest ?? Number.NaN
// Target: 0.5.
expectAtMost(`/agents/{slug}/ ÷ ${proxy}, CPU`, cpuOf('gateway, /agents/{slug}/') / cpuOf(proxy), 1.25)
console.log(
  `          POST / ÷ ${proxy}, CPU: ${(cpuOf('gateway, POST /, tasks/get') / cpuOf(proxy)).toFixed(2)}`,
)
checkTarget(
  '/agents/{slug}/ ÷ bare undici forwarder, CPU',
  cpuOf('gateway, /agents/{slug}/') / cpuOf('bare undici forwarder'),
)
checkTarget('POST / with message/send, CPU of the gateway', cpuOf('gateway, POST /, message/send'))
checkTarget(
  'POST / with message/send ÷ bare undici forwarder, CPU',
  cpuOf('gateway, POST /, message/send') / cpuOf('bare undici forwarder'),
)
await saveResults('gateway-hop', { nginx: hasNginx ? 'measured' : 'not installed', ...found })
