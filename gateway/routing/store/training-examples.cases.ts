import type { TrainingExample } from '@parley/negotiation/score/training-example'
import { expect, test } from 'vitest'
import type { RoutingStore } from './routing-store.ts'

/** A good example of the agent `sky`. */
export const example = (more: Partial<TrainingExample> = {}): TrainingExample => ({
  agent: 'sky',
  context: 'k1',
  caller: 'who',
  at: 1000,
  outcome: 1,
  words: { rain: 2 },
  ...more,
})

/** Conformance cases for the training examples of a routing store. `store` returns the store of the test, which is empty. */
export function trainingExampleCases(store: () => RoutingStore): void {
  test('an example is also removed with the context that it names, and keeps its vector', async () => {
    const correction = example({ context: 'k2', removedWith: 'k1', vector: 'AQID' })
    await store().saveTrainingExample(example())
    await store().saveTrainingExample(correction)
    await store().saveTrainingExample(example({ context: 'k3', removedWith: 'k4' }))
    expect(await store().findTrainingExample('k2', 'sky')).toEqual(correction)
    expect((await store().removeTrainingExamplesOf('k1')).toSorted()).toEqual(['k1', 'k2'])
    expect((await store().trainingExamples()).map(({ context: key }) => key)).toEqual(['k3'])
    await store().saveTrainingExample(example({ context: 'k3' }))
    expect(await store().removeTrainingExamplesOf('k4')).toEqual([])
  })

  test('the examples of an agent are removed together, or only those of one caller', async () => {
    await store().saveTrainingExample(example({ at: 2000 }))
    await store().saveTrainingExample(example({ context: 'k2', at: 500, caller: 'other' }))
    await store().saveTrainingExample(example({ context: 'k3', at: 900, caller: '$where' }))
    await store().saveTrainingExample(example({ agent: 'sea', caller: 'other' }))
    expect((await store().trainingExamplesOf('sky')).map(({ at }) => at)).toEqual([500, 900, 2000])
    expect(await store().removeTrainingExamplesOfAgent('sky', 'other')).toBe(1)
    expect(await store().removeTrainingExamplesOfAgent('sky', '')).toBe(0)
    expect((await store().trainingExamplesOf('sky')).map(({ at }) => at)).toEqual([900, 2000])
    expect(await store().removeTrainingExamplesOfAgent('sky')).toBe(2)
    expect(await store().removeTrainingExamplesOfAgent('sky')).toBe(0)
    expect(await store().trainingExamplesOf('sky')).toEqual([])
    expect(await store().trainingExamplesOf('sea')).toHaveLength(1)
    await store().saveTrainingExample(example())
    expect(await store().trainingExamplesOf('sky')).toEqual([example()])
  })

  test('there is one example per context and agent, which is removed with the context', async () => {
    await store().saveTrainingExample(example())
    await store().saveTrainingExample(example({ at: 2000, outcome: -1 }))
    await store().saveTrainingExample(example({ agent: 'sea', at: 500 }))
    await store().saveTrainingExample(example({ context: 'k2', at: 3000 }))
    expect((await store().trainingExamples()).map(({ at }) => at)).toEqual([500, 2000, 3000])
    expect(await store().findTrainingExample('k1', 'sky')).toEqual(example({ at: 2000, outcome: -1 }))
    await store().removeTrainingExample('k1', 'sea')
    expect(await store().findTrainingExample('k1', 'sea')).toBeUndefined()
    await store().removeTrainingExamplesOf('k1')
    expect(await store().findTrainingExample('k1', 'sky')).toBeUndefined()
    expect((await store().trainingExamples()).map(({ context: key }) => key)).toEqual(['k2'])
  })
}
