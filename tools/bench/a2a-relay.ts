/**
 * `SendMessage` that waits, to an agent of `@a2a-js/sdk` 1.3: sent directly, and through the gateway, and its relay stores the
 * task and follows the agent's stream. CPU time of the gateway and the relay; the agent runs on the other core. With one
 * connection, p50 is the time of a call that waits for no other.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ServerProcess } from './servers/server-process.ts'
import { httpRequest } from './support/load.ts'
import { cores, cpuMicrosOf, descendantsOf } from './support/machine.ts'
import { measure } from './support/measure.ts'
import { printFigures, saveResults } from './support/report.ts'
import { inRounds, type Subject } from './support/rounds.ts'

const mustHold = 'TASK_STATE_COMPLETED'
/** Fewer than for other servers, because a relayed call takes longer. */
const warmUp = 2000
const program = (name: string) => `${import.meta.dirname}/servers/${name}-process.ts`
const agentOn = (core: number) => ServerProcess.start({ args: [program('foreign-agent')], core })

function sends(at: string, headers: Record<string, string>): string[] {
  return Array.from({ length: 200 }, () => {
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: 'calculate 6*7' }] }
    const body = { jsonrpc: '2.0', id: '1', method: 'SendMessage', params: { message } }
    return httpRequest({ path: at, headers: { 'A2A-Version': '1.0', ...headers }, body })
  })
}

const direct =
  (connections: number): Subject =>
  async (generator) => {
    await using agent = await agentOn(cores.server)
    const requests = sends('/rpc', {})
    return (await measure(generator, agent, { requests, mustHold, warmUp, connections })).figures
  }

const relayed =
  (connections: number): Subject =>
  async (generator) => {
    await using stack = new AsyncDisposableStack()
    const folder = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const agent = stack.use(await agentOn(cores.load))
    const tokenFile = path.join(folder, 'token')
    const gateway = stack.use(
      await ServerProcess.start({
        args: ['--disable-warning=ExperimentalWarning', program('relay-gateway')],
        core: cores.server,
        env: { UPSTREAM: agent.address, TOKEN_FILE: tokenFile },
      }),
    )
    const token = await readFile(tokenFile, 'utf8')
    const server = {
      address: gateway.address,
      get cpuMicros() {
        const all = [gateway.pid, ...descendantsOf(gateway.pid)]
        return all.reduce((sum, pid) => sum + cpuMicrosOf(pid), 0)
      },
    }
    const requests = sends('/agents/js-v1/a2a/v1', { Authorization: `Bearer ${token}` })
    return (await measure(generator, server, { requests, mustHold, warmUp, connections })).figures
  }

const found = await inRounds({
  direct: direct(32),
  'through the gateway and its relay': relayed(32),
  'direct, one connection': direct(1),
  'through both, one connection': relayed(1),
})
printFigures(found.medians)
await saveResults('a2a-relay', { ...found })
