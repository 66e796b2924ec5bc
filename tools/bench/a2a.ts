/**
 * Sends over A2A 1.0 and 0.3 to the echo agent, compared with `message/send` of Parley's own dialect: CPU time of the agent
 * per request, with token introspection and the durable store. `SendMessage` with `returnImmediately` does the same work as
 * `message/send`. Sends that wait answer with the completed task.
 */
import { randomUUID } from 'node:crypto'
import { AgentUnderTest, sendParams, text } from './support/agent-under-test.ts'
import { httpRequest } from './support/load.ts'
import { measure } from './support/measure.ts'
import { expectAtMost, printFigures, saveResults } from './support/report.ts'
import { inRounds, type Subject } from './support/rounds.ts'
import { tokenOf } from './support/tokens.ts'

interface Sent {
  path: string
  method: string
  params: object
  mustHold: string
}

const sends =
  ({ path, method, params, mustHold }: Sent): Subject =>
  async (generator) => {
    await using agent = await AgentUnderTest.start()
    const headers = { Authorization: `Bearer ${tokenOf(0)}` }
    const requests = [httpRequest({ path, headers, body: { jsonrpc: '2.0', id: '1', method, params } })]
    const { figures, accepted } = await measure(generator, agent.server, { requests, mustHold })
    await agent.waitForCompleted(accepted)
    return figures
  }

const v1 = (returnImmediately: boolean) => ({
  message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }] },
  configuration: { returnImmediately },
})
const own = { path: '/', method: 'message/send', params: sendParams(), mustHold: '"state":"submitted"' }
const ofV1 = { path: '/a2a/v1', method: 'SendMessage' }
const ofV03 = { path: '/a2a/v0.3', method: 'message/send' }

const found = await inRounds({
  'message/send': sends(own),
  'A2A 1.0, returns': sends({ ...ofV1, params: v1(true), mustHold: 'TASK_STATE_SUBMITTED' }),
  'A2A 0.3, returns': sends({
    ...ofV03,
    params: { ...sendParams(), configuration: { blocking: false } },
    mustHold: own.mustHold,
  }),
  'A2A 1.0, waits': sends({ ...ofV1, params: v1(false), mustHold: 'TASK_STATE_COMPLETED' }),
})
printFigures(found.medians)
const cpuOf = (name: string) => found.medians[name]?.cpuMicrosPerRequest ?? Number.NaN
for (const name of ['A2A 1.0, returns', 'A2A 0.3, returns'])
  expectAtMost(`${name} ÷ message/send, CPU`, cpuOf(name) / cpuOf('message/send'), 1.1)
await saveResults('a2a', { ...found })
