/**
 * `message/send` to an echo agent, with token introspection; each task is durable and runs to `completed`. Compared
 * with the official A2A server, which works in memory, without authentication, and also completes its tasks. Each round
 * starts new processes, so that no data from an earlier round affects it.
 */

import { SdkServer, sdkLoad } from './servers/sdk-server.ts'
import { AgentUnderTest, callsOf, sendParams, text } from './support/agent-under-test.ts'
import { measure } from './support/measure.ts'
import { compare, printFigures, saveResults } from './support/report.ts'
import { inRounds, type Subject } from './support/rounds.ts'

const ours =
  (tokens: number): Subject =>
  async (generator) => {
    await using agent = await AgentUnderTest.start()
    const requests = callsOf(tokens, 'message/send', sendParams())
    const { figures, accepted } = await measure(generator, agent.server, {
      requests,
      mustHold: '"state":"submitted"',
    })
    await agent.waitForCompleted(accepted)
    return figures
  }

const theirs: Subject = async (generator) => {
  await using sdk = await SdkServer.start()
  const { figures, accepted } = await measure(generator, sdk.server, sdkLoad(text))
  await sdk.waitForCompleted(accepted)
  return figures
}

const found = await inRounds({
  'parley, one token': ours(1),
  'parley, 100 tokens': ours(100),
  '@a2a-js/sdk': theirs,
})
printFigures(found.medians)
// Target: 2.
compare(found.medians, '@a2a-js/sdk', 1.2)
await saveResults('message-send', found)
