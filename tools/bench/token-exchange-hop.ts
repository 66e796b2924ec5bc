/**
 * Cost of token exchange for requests to agents: the gateway's CPU time with its own OAuth server and a warm cache, compared
 * with a gateway that forwards the callers' tokens, by requests that are sent to both in turn, for several starts of the two. The agent runs on the other core.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ServerProcess } from './servers/server-process.ts'
import { sendParams } from './support/agent-under-test.ts'
import { httpRequest, LoadGenerator } from './support/load.ts'
import { cores } from './support/machine.ts'
import { median, quick } from './support/measure.ts'
import { inPairs, type PairedFigures } from './support/pairs.ts'
import { expectAtMost, saveResults } from './support/report.ts'
import { operatorToken } from './support/tokens.ts'

const mustHold = '"kind":"task"'
const taskId = randomUUID()
const program = (name: string) => `${import.meta.dirname}/servers/${name}-process.ts`

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

/** The two gateways, with the agent to which they forward. */
async function start(stack: AsyncDisposableStack) {
  const upstream = stack.use(await ServerProcess.start({ args: [program('upstream')], core: cores.load }))
  const gateway = async (exchange: 'embedded' | 'none') => {
    const dataDir = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
    stack.defer(() => rm(dataDir, { recursive: true, force: true }))
    const server = stack.use(
      await ServerProcess.start({
        args: ['--disable-warning=ExperimentalWarning', program('gateway')],
        core: cores.server,
        env: { UPSTREAM: upstream.address, DATA_DIR: dataDir, EXCHANGE: exchange },
      }),
    )
    return { server, headers: { Authorization: `Bearer ${await operatorToken(dataDir)}` } }
  }
  return { exchanged: await gateway('embedded'), forwarded: await gateway('none') }
}

/** A pair of processes differs from the next one by up to 10 %, so several pairs are started. */
const [starts, rounds] = quick ? [3, 3] : [5, 5]
const paths = { '/agents/{slug}/, tasks/get': gets, 'POST /, message/send': sends }

async function measure(): Promise<[name: string, PairedFigures][]> {
  await using stack = new AsyncDisposableStack()
  const generator = stack.use(new LoadGenerator())
  const gateways = await start(stack)
  const found: [string, PairedFigures][] = []
  for (const [name, requests] of Object.entries(paths)) {
    const loadOf = ({ server, headers }: typeof gateways.exchanged) => {
      return { server, load: { requests: requests(headers), mustHold } }
    }
    const [one, other] = [loadOf(gateways.exchanged), loadOf(gateways.forwarded)]
    found.push([name, await inPairs(generator, one, other, { pairs: rounds })])
  }
  return found
}

const results: Record<string, PairedFigures[]> = {}
for (let number = 0; number < starts; number += 1)
  for (const [name, figures] of await measure()) (results[name] ??= []).push(figures)
for (const [name, found] of Object.entries(results)) {
  const ratios = found.map(({ ratio }) => ratio)
  const micros = [0, 1].map((side) => median(found.map((one) => one.micros[side] ?? Number.NaN)))
  const range = [Math.min(...ratios), Math.max(...ratios)].map((value) => value.toFixed(3))
  console.log(`${name}: ${micros.map((value) => value.toFixed(1)).join(' and ')} µs of CPU per request`)
  console.log(`${name}: ratios of ${starts} starts ${range.join(' to ')}`)
  expectAtMost(`${name}, exchanged ÷ forwarded, CPU`, median(ratios), 1.05)
}
await saveResults('token-exchange-hop', results)
