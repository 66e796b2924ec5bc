/**
 * `tasks/get` for completed tasks, with token introspection. Compared with a Fastify route that validates the same body
 * with zod and sends the same bytes, to measure the cost of Parley on top of its framework.
 */

import { ServerProcess } from './servers/server-process.ts'
import { AgentUnderTest, callOf, sendParams } from './support/agent-under-test.ts'
import { httpRequest } from './support/load.ts'
import { cores } from './support/machine.ts'
import { measure } from './support/measure.ts'
import { checkTarget, compare, printFigures, saveResults } from './support/report.ts'
import { inRounds, type Subject } from './support/rounds.ts'

const mustHold = '"state":"completed"'
/** V8 compiles code of either server until about this many requests. */
const warmUp = 50_000

/** A response of an agent, and the id of its task. */
let sample = { answer: '', taskId: '' }

const ours =
  (tokens: number, leases = true): Subject =>
  async (generator) => {
    await using agent = await AgentUnderTest.start({ leases })
    const requests: string[] = []
    for (let number = 0; number < tokens; number += 1) {
      const sent = await agent.call('message/send', sendParams(), number)
      const { id } = (JSON.parse(sent) as { result: { id: string } }).result
      requests.push(callOf(number, 'tasks/get', { task_id: id }))
      sample.taskId = id
    }
    await agent.waitForCompleted(tokens)
    sample.answer = await agent.call('tasks/get', { task_id: sample.taskId }, tokens - 1)
    return (await measure(generator, agent.server, { requests, mustHold, warmUp })).figures
  }

const theirs: Subject = async (generator) => {
  await using server = await ServerProcess.start({
    args: [`${import.meta.dirname}/servers/bare-route-process.ts`],
    core: cores.server,
    env: { ANSWER: sample.answer },
  })
  const params = { task_id: sample.taskId }
  const body = { jsonrpc: '2.0', id: '1', method: 'tasks/get', params }
  const requests = [httpRequest({ path: '/', headers: {}, body })]
  return (await measure(generator, server, { requests, mustHold, warmUp })).figures
}

const bare = 'bare Fastify route'
const found = await inRounds({
  'parley, one token': ours(1),
  'parley, 100 tokens': ours(100),
  'parley, 100 tokens, no leases': ours(100, false),
  [bare]: theirs,
})
printFigures(found.medians)
compare(found.medians, bare)
const rate = (name: string) => found.medians[name]?.requestsPerSecond ?? Number.NaN
for (const tokens of ['one token', '100 tokens'] as const)
  checkTarget(`tasks/get ÷ ${bare}, requests/s, ${tokens}`, rate(`parley, ${tokens}`) / rate(bare))
await saveResults('tasks-get', found)
