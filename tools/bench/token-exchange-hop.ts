/**
 * Cost of token exchange for requests to agents: the gateway's CPU time with its own OAuth server and a warm cache, compared
 * with a gateway that forwards the callers' tokens. The agent runs on the other core.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { z } from 'zod'
import { ServerProcess } from './servers/server-process.ts'
import { sendParams } from './support/agent-under-test.ts'
import { httpRequest } from './support/load.ts'
import { cores } from './support/machine.ts'
import { measure } from './support/measure.ts'
import { expectAtMost, printFigures, saveResults } from './support/report.ts'
import { inRounds, type Subject } from './support/rounds.ts'

const mustHold = '"kind":"task"'
const taskId = randomUUID()
const program = (name: string) => `${import.meta.dirname}/servers/${name}-process.ts`
const client = z.object({ client_id: z.string(), client_secret: z.string(), token_url: z.url() })

type Headers = Record<string, string>
const gets = (headers: Headers) => {
  const body = { jsonrpc: '2.0', id: '1', method: 'tasks/get', params: { task_id: taskId } }
  return [httpRequest({ path: '/agents/upstream/', headers, body })]
}
const sends = (headers: Headers) =>
  Array.from({ length: 200 }, () => {
    const body = { jsonrpc: '2.0', id: '1', method: 'message/send', params: sendParams() }
    return httpRequest({ path: '/', headers, body })
  })

/** Requests a token with the operator's client, which the gateway creates. */
async function tokenFrom(dataDir: string): Promise<string> {
  const file = path.join(dataDir, 'oauth', 'operator-client.json')
  const { token_url: url, ...credentials } = client.parse(JSON.parse(await readFile(file, 'utf8')))
  const form = { grant_type: 'client_credentials', scope: 'agent:read agent:write', ...credentials }
  const response = await fetch(url, { method: 'POST', body: new URLSearchParams(form) })
  return z.object({ access_token: z.string() }).parse(await response.json()).access_token
}

const gateway =
  (exchange: 'embedded' | 'none', requests: (headers: Headers) => string[]): Subject =>
  async (generator) => {
    await using stack = new AsyncDisposableStack()
    const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
    stack.defer(() => rm(dataDir, { recursive: true, force: true }))
    const upstream = stack.use(await ServerProcess.start({ args: [program('upstream')], core: cores.load }))
    const server = stack.use(
      await ServerProcess.start({
        args: ['--disable-warning=ExperimentalWarning', program('gateway')],
        core: cores.server,
        env: { UPSTREAM: upstream.address, DATA_DIR: dataDir, EXCHANGE: exchange },
      }),
    )
    const headers = { Authorization: `Bearer ${await tokenFrom(dataDir)}` }
    return (await measure(generator, server, { requests: requests(headers), mustHold })).figures
  }

const found = await inRounds({
  '/agents/{slug}/, tasks/get, exchanged': gateway('embedded', gets),
  '/agents/{slug}/, tasks/get, forwarded': gateway('none', gets),
  'POST /, message/send, exchanged': gateway('embedded', sends),
  'POST /, message/send, forwarded': gateway('none', sends),
})
printFigures(found.medians)
const cpuOf = (name: string) => found.medians[name]?.cpuMicrosPerRequest ?? Number.NaN
for (const path of ['/agents/{slug}/, tasks/get', 'POST /, message/send'])
  expectAtMost(
    `${path}, exchanged ÷ forwarded, CPU`,
    cpuOf(`${path}, exchanged`) / cpuOf(`${path}, forwarded`),
    1.05,
  )
await saveResults('token-exchange-hop', { ...found })
