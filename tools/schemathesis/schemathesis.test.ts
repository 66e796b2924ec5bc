import { expect, test } from 'vitest'
import { runSchemathesis, schemathesisIsThere, startFuzzedDeployment } from './run.ts'

/** The same requests in each run, as far as they do not contain values of earlier responses. */
const seed = 16

test.runIf(schemathesisIsThere())(
  'the responses to 2,000 requests to the gateway and to agents are as their OpenAPI documents say (needs schemathesis)',
  async () => {
    await using deployment = await startFuzzedDeployment()
    const { gateway, agents } = deployment
    const results = await Promise.all([runSchemathesis({ ...gateway, examples: 9, seed }), ofAgents(agents)])
    const all = results.flat()
    expect(all.map(({ failures }) => failures)).toEqual(['', '', ''])
    expect(all.reduce((sum, { requests }) => sum + requests, 0)).toBeGreaterThanOrEqual(2000)
  },
  600_000,
)

async function ofAgents(agents: { url: string; tokens: (string | null)[] }[]) {
  const results = []
  for (const agent of agents) results.push(await runSchemathesis({ ...agent, examples: 6, seed }))
  return results
}
