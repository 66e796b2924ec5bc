/**
 * CPU cost of a DID signature: `tasks/get` with a token alone and with a signature, compared with a bare verification
 * by `node:crypto` on the same core in the same run.
 */
import { execFileSync } from 'node:child_process'
import { signRequest } from '@parley/kit/did/signature'
import { AgentUnderTest, sendParams } from './support/agent-under-test.ts'
import { httpRequest } from './support/load.ts'
import { cores, nodeOn } from './support/machine.ts'
import { measure, median } from './support/measure.ts'
import { expectAtLeast, expectAtMost, printFigures, saveResults } from './support/report.ts'
import { inRounds, type Subject } from './support/rounds.ts'
import { benchKey, clientOf, tokenOf } from './support/tokens.ts'

const bodyOf = (taskId: string) => ({
  jsonrpc: '2.0',
  id: '1',
  method: 'tasks/get',
  params: { task_id: taskId },
})
const verifications: { bare: number; request: number }[] = []

const subject =
  (signed: boolean): Subject =>
  async (generator) => {
    await using agent = await AgentUnderTest.start()
    const sent = await agent.call('message/send', sendParams())
    const { id } = (JSON.parse(sent) as { result: { id: string } }).result
    await agent.waitForCompleted(1)
    const body = bodyOf(id)
    const token = tokenOf(0)
    const bearer = { Authorization: `Bearer ${token}` }
    const signature = signRequest({ did: clientOf(token), key: benchKey, body: JSON.stringify(body) })
    const headers = signed ? { ...bearer, ...signature } : bearer
    const requests = [httpRequest({ path: '/', headers, body })]
    if (signed) verifications.push(verify(JSON.stringify(body)))
    return (await measure(generator, agent.server, { requests, mustHold: '"state":"completed"' })).figures
  }

function verify(body: string): { bare: number; request: number } {
  const { file, args } = nodeOn(cores.server, [`${import.meta.dirname}/servers/verify-process.ts`, body])
  return JSON.parse(execFileSync(file, args, { encoding: 'utf8' })) as { bare: number; request: number }
}

const found = await inRounds({ token: subject(false), 'token and signature': subject(true) })
printFigures(found.medians)
const bare = median(verifications.map((one) => one.bare))
const request = median(verifications.map((one) => one.request))
const cpu = (name: string) => found.medians[name]?.cpuMicrosPerRequest ?? Number.NaN
const more = cpu('token and signature') - cpu('token')
console.log(`bare verification: ${bare.toFixed(1)} µs, with the request: ${request.toFixed(1)} µs`)
expectAtMost(
  `additional CPU time of a signature: ${more.toFixed(1)} µs; as a multiple of a bare verification`,
  more / bare,
  1.4,
)
expectAtLeast('request verifications per second on one core', 1_000_000 / request, 8000)
await saveResults('auth', { ...found, verifications })
