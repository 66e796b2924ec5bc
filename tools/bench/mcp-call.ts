/**
 * A `tools/call` of the echo agent that ends immediately, compared with `message/send` followed by `tasks/get`: CPU time of the
 * gateway and the agent, in one deployment, by batches that are sent in turn. A batch ends when no process works any more, so
 * that the work after an answer counts too.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { z } from 'zod'
import { ServerProcess } from './servers/server-process.ts'
import { sendParams } from './support/agent-under-test.ts'
import { httpRequest, type Load, LoadGenerator } from './support/load.ts'
import { cores, cpuMicrosOf, descendantsOf } from './support/machine.ts'
import { connections, median, quick } from './support/measure.ts'
import { expectAtMost, printTable, saveResults } from './support/report.ts'

const rounds = quick ? 3 : 9
const batch = quick ? 1000 : 3000
const warmUp = quick ? 3000 : 10_000
const idleMs = 300
/** The resolution of CPU times is 10 ms per process. */
const idleMicros = 20_000

const version = '2026-07-28'
const call = { name: 'echo', arguments: { text: 'hello' } }
const meta = {
  'io.modelcontextprotocol/protocolVersion': version,
  'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
}
const created = z.object({ result: z.object({ id: z.string() }) })
const program = path.join(import.meta.dirname, 'servers', 'deployment-process.ts')

type Kind = Pick<Load, 'requests' | 'mustHold'>

function kindsOf(token: string, taskId: string): Record<string, Kind> {
  const authorization = { Authorization: `Bearer ${token}` }
  const request = (method: string, params: object) => ({ jsonrpc: '2.0', id: '1', method, params })
  const own = (method: string, params: object) =>
    httpRequest({ path: '/agents/echo/', headers: authorization, body: request(method, params) })
  const modern = {
    ...authorization,
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': version,
    'Mcp-Method': 'tools/call',
    'Mcp-Name': call.name,
  }
  const tool = httpRequest({
    path: '/agents/echo/mcp',
    headers: modern,
    body: request('tools/call', { ...call, _meta: meta }),
  })
  const sends = Array.from({ length: 200 }, () => own('message/send', { ...sendParams(), id: randomUUID() }))
  return {
    'message/send': { requests: sends, mustHold: '"state":"submitted"' },
    'tasks/get': { requests: [own('tasks/get', { task_id: taskId })], mustHold: '"state":"completed"' },
    'tools/call': { requests: [tool], mustHold: '"content"' },
  }
}

async function startDeployment(stack: AsyncDisposableStack) {
  const folder = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
  stack.defer(() => rm(folder, { recursive: true, force: true }))
  const tokenFile = path.join(folder, 'token')
  const { pid, address } = stack.use(
    await ServerProcess.start({
      args: ['--disable-warning=ExperimentalWarning', program],
      core: cores.server,
      env: { AGENTS: '../tools/bench/support/echo', TOKEN_FILE: tokenFile },
    }),
  )
  const cpuMicros = () => [pid, ...descendantsOf(pid)].reduce((sum, one) => sum + cpuMicrosOf(one), 0)
  return { address, cpuMicros, token: await readFile(tokenFile, 'utf8') }
}

await using stack = new AsyncDisposableStack()
const generator = stack.use(new LoadGenerator())
const { address, cpuMicros, token } = await startDeployment(stack)

async function untilIdle(): Promise<void> {
  for (let before = cpuMicros(); ; ) {
    await wait(idleMs)
    const now = cpuMicros()
    if (now - before <= idleMicros) return
    before = now
  }
}

async function microsOf(kind: Kind, total: number): Promise<number> {
  const before = cpuMicros()
  const { accepted } = await generator.run({ ...kind, address, connections, total })
  await untilIdle()
  return (cpuMicros() - before) / accepted
}

const sent = await fetch(`${address}/agents/echo/`, {
  method: 'POST',
  headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  body: JSON.stringify({ jsonrpc: '2.0', id: '1', method: 'message/send', params: sendParams() }),
})
const kinds = kindsOf(token, created.parse(await sent.json()).result.id)
await untilIdle()
for (const kind of Object.values(kinds)) await microsOf(kind, warmUp)

const found: Record<string, number[]> = {}
for (let round = 0; round < rounds; round += 1)
  for (const [name, kind] of Object.entries(kinds)) (found[name] ??= []).push(await microsOf(kind, batch))

const middle = (name: string) => median(found[name] ?? [])
printTable(
  ['', 'CPU µs/request'],
  Object.keys(found).map((name) => [name, middle(name).toFixed(0)]),
)
const ratios = (found['tools/call'] ?? []).map((value, round) => {
  const [send, get] = [found['message/send']?.[round], found['tasks/get']?.[round]]
  return value / ((send ?? Number.NaN) + (get ?? Number.NaN))
})
expectAtMost('tools/call ÷ (message/send + tasks/get), CPU', median(ratios), 1.3)
await saveResults('mcp-call', { found })
