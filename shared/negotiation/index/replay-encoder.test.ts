import {
  closeEncoder,
  exampleVector,
  optionsFor,
  prepare,
  vectorsFor,
} from '@parley/tools/bench/support/meaning'
import { encoderRuns } from '@parley/tools/testing/encoder-runs'
import { afterAll, describe } from 'vitest'
import { replayCases, replayedAgents, replayedTexts } from './replay.cases.ts'
import type { AgentVectors } from './skill-vectors.ts'

const runs = encoderRuns()
const vectors = new Map<string, AgentVectors>()
if (runs) {
  await prepare(replayedTexts)
  for (const [name, offer] of replayedAgents) vectors.set(name, await vectorsFor(offer))
}
afterAll(closeEncoder)

describe.skipIf(!runs)('(needs onnxruntime-node) ranked by words and encoder', () => {
  replayCases({
    // A ranking with vectors takes longer.
    shuffles: 15,
    optionsFor: (text) => optionsFor(text, 'meaning'),
    exampleVector: (text) => exampleVector(text, 'meaning'),
    vectorsOf: (agent) => vectors.get(agent),
    // Nearly all choices among the bundled agents are right without ratings, which correct none of the others.
    correctedMin: { 'the bundled agents': 0, '40 agents of a list': 1 },
  })
})
