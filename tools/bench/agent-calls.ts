/**
 * A call by `AgentCalls`, which sends a message and waits for the end of its task, compared with what an A2A client does for the
 * same answer: `message/send` and, once the task has ended, `tasks/get`. CPU time of the gateway and the agent.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { ServerProcess } from './servers/server-process.ts'
import { httpRequest } from './support/load.ts'
import { cores, cpuMicrosOf, descendantsOf } from './support/machine.ts'
import { measure } from './support/measure.ts'
import { expectAtMost, printFigures, saveResults } from './support/report.ts'
import { inRounds, type Subject } from './support/rounds.ts'

/** Fewer than for other servers, because a call runs a task. */
const warmUp = 3000

interface Sent {
  at: string
  body: object
  mustHold: string
}

const program = `${import.meta.dirname}/servers/calls-gateway-process.ts`
/** A text for which the gateway chooses the echo agent. */
const text = 'Repeats this text: the quick brown fox jumps over the lazy dog'
const sendParams = () => ({
  message: { role: 'user', messageId: randomUUID(), parts: [{ kind: 'text', text }] },
})
const rpc = (method: string, params: object) => ({ jsonrpc: '2.0', id: '1', method, params })
const headersOf = (token: string) => ({ Authorization: `Bearer ${token}` })

/** @param requestOf returns the request to measure. It may send others first. */
const subject =
  (requestOf: (address: string, token: string) => Sent | Promise<Sent>): Subject =>
  async (generator) => {
    await using stack = new AsyncDisposableStack()
    const folder = await mkdtemp(path.join(tmpdir(), 'parley-bench-'))
    stack.defer(() => rm(folder, { recursive: true, force: true }))
    const tokenFile = path.join(folder, 'token')
    const gateway = stack.use(
      await ServerProcess.start({
        args: ['--disable-warning=ExperimentalWarning', program],
        core: cores.server,
        env: { TOKEN_FILE: tokenFile },
      }),
    )
    const server = {
      address: gateway.address,
      get cpuMicros() {
        const all = [gateway.pid, ...descendantsOf(gateway.pid)]
        return all.reduce((sum, pid) => sum + cpuMicrosOf(pid), 0)
      },
    }
    const token = await readFile(tokenFile, 'utf8')
    const { at, body, mustHold } = await requestOf(gateway.address, token)
    const requests = [httpRequest({ path: at, headers: headersOf(token), body })]
    return (await measure(generator, server, { requests, mustHold, warmUp })).figures
  }

const sends = (at: string) =>
  subject(() => ({ at, body: rpc('message/send', sendParams()), mustHold: '"state":"submitted"' }))

/** Reads one completed task repeatedly. */
const reads = (at: string) =>
  subject(async (address, token) => {
    const params = { ...sendParams(), configuration: { wait_ms: 10_000 } }
    const response = await fetch(`${address}${at}`, {
      method: 'POST',
      headers: { ...headersOf(token), 'content-type': 'application/json' },
      body: JSON.stringify(rpc('message/send', params)),
    })
    const { result } = (await response.json()) as { result: { id: string } }
    return { at, body: rpc('tasks/get', { task_id: result.id }), mustHold: '"state":"completed"' }
  })

const calls = (at: string) => subject(() => ({ at, body: { text }, mustHold: '"state":"completed"' }))

const found = await inRounds({
  'message/send to an agent': sends('/agents/echo/'),
  'tasks/get from an agent': reads('/agents/echo/'),
  'call of an agent': calls('/call/echo'),
  'message/send, negotiated': sends('/'),
  'tasks/get, routed': reads('/'),
  'call, negotiated': calls('/call'),
})
printFigures(found.medians)
const cpuOf = (name: string) => found.medians[name]?.cpuMicrosPerRequest ?? Number.NaN
expectAtMost(
  'call of an agent ÷ message/send and tasks/get, CPU',
  cpuOf('call of an agent') / (cpuOf('message/send to an agent') + cpuOf('tasks/get from an agent')),
  1.3,
)
expectAtMost(
  'call, negotiated ÷ message/send and tasks/get, CPU',
  cpuOf('call, negotiated') / (cpuOf('message/send, negotiated') + cpuOf('tasks/get, routed')),
  1.3,
)
await saveResults('agent-calls', { ...found })
