/**
 * `message/send` to an echo agent, with token introspection; each task is durable and runs to `completed`. Compared
 * with the official A2A server, which works in memory, without authentication, and also completes its tasks. Each round
 * starts new processes, so that no data from an earlier round affects it.
 *
 * First, the servers may use all cores, one process each, and the load generator runs at a lower priority. Then, each
 * server has one core and the load generator another, which measures CPU time precisely.
 */

import { SdkServer, sdkLoad } from './servers/sdk-server.ts'
import { AgentUnderTest, callsOf, sendParams, text } from './support/agent-under-test.ts'
import type { Placement } from './support/machine.ts'
import { type Figures, measure } from './support/measure.ts'
import { checkTarget, compare, printFigures, saveResults } from './support/report.ts'
import { type Found, inRounds, type Subject } from './support/rounds.ts'

const sdk = '@a2a-js/sdk'

const ours =
  (tokens: number, placement: Placement): Subject =>
  async (generator) => {
    await using agent = await AgentUnderTest.start({ placement })
    const requests = callsOf(tokens, 'message/send', sendParams())
    const { figures, accepted } = await measure(generator, agent.server, {
      requests,
      mustHold: '"state":"submitted"',
    })
    await agent.waitForCompleted(accepted)
    return figures
  }

const theirs =
  (placement: Placement): Subject =>
  async (generator) => {
    await using server = await SdkServer.start(placement)
    const { figures, accepted } = await measure(generator, server.server, sdkLoad(text))
    await server.waitForCompleted(accepted)
    return figures
  }

async function measured(placement: Placement, title: string): Promise<Found> {
  const subjects = {
    'parley, one token': ours(1, placement),
    'parley, 100 tokens': ours(100, placement),
    [sdk]: theirs(placement),
  }
  const found = await inRounds(subjects, placement)
  console.log(`\n${title}`)
  printFigures(found.medians)
  compare(found.medians, sdk)
  return found
}

function ratio({ medians }: Found, tokens: string, of: (figures: Figures) => number): number {
  const [own, other] = [medians[`parley, ${tokens}`], medians[sdk]]
  return own === undefined || other === undefined ? Number.NaN : of(own) / of(other)
}

const free = await measured('free', 'All cores for the server, the load generator at a lower priority')
const pinned = await measured('pinned', 'One core for the server')
console.log('')
for (const tokens of ['one token', '100 tokens'] as const) {
  const of = `message/send ÷ ${sdk}` as const
  checkTarget(
    `${of}, requests/s, free cores, ${tokens}`,
    ratio(free, tokens, (one) => one.requestsPerSecond),
  )
  checkTarget(
    `${of}, p99, free cores, ${tokens}`,
    ratio(free, tokens, (one) => one.p99Ms),
  )
  checkTarget(
    `${of}, CPU, one core, ${tokens}`,
    ratio(pinned, tokens, (one) => one.cpuMicrosPerRequest),
  )
}
await saveResults('message-send', { free, pinned })
