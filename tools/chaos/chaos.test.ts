import { expect, test } from 'vitest'
import { hasServers } from '../testing/agent-processes.ts'
import { faultKinds } from './plan.ts'
import { chaosRun, wrongIn } from './run.ts'

test.skipIf(!hasServers)(
  '30 s of chaos: nothing acknowledged is lost, doubled or stuck, webhooks are complete, payments equal the ledger (needs mongod, redis-server)',
  async () => {
    const said: string[] = []
    const figures = await chaosRun({ seed: 7, seconds: 30, say: (text) => said.push(text) })
    // With what came before, for whoever reads a failure.
    expect({ wrong: wrongIn(figures), said }).toEqual({ wrong: [], said })
    expect(Object.keys(figures.faults).sort()).toEqual([...faultKinds].sort())
  },
  // A bound against hanging: what stands still is found out, and said, before.
  600_000,
)
