import { expect, test } from 'vitest'
import { hasServers } from '../testing/agent-processes.ts'
import { faultKinds } from './plan.ts'
import { chaosRun, wrongIn } from './run.ts'

test.skipIf(!hasServers)(
  '30 s of chaos: no acknowledged task is lost, duplicated or stuck, webhooks are complete, payments equal the ledger (needs mongod, redis-server)',
  async () => {
    const progress: string[] = []
    const figures = await chaosRun({ seed: 7, seconds: 30, say: (text) => progress.push(text) })
    // The progress messages help to analyse a failure.
    expect({ wrong: wrongIn(figures), progress }).toEqual({ wrong: [], progress })
    expect(Object.keys(figures.faults).sort()).toEqual([...faultKinds].sort())
  },
  // This limit ends a hanging run. The run itself detects and reports a standstill earlier.
  600_000,
)
