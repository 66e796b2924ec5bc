import { expect, test } from 'vitest'
import { failoverRun, wrongIn } from './run.ts'

test('if an agent is killed under load, no acknowledged task is lost or repeated, and the agent later gets work again', async () => {
  const progress: string[] = []
  const options = { seed: 3, seconds: 3, rate: 10, say: (text: string) => progress.push(text) }
  const figures = await failoverRun(options)
  // The progress messages help to analyse a failure.
  expect({ wrong: wrongIn(figures), progress }).toEqual({ wrong: [], progress })
  const { sent, acknowledged, refused, unsettled, kills } = figures
  expect(kills.length).toBeGreaterThan(0)
  expect(sent).toBe(acknowledged.length + [...refused.values()].flat().length + unsettled.length)
}, 600_000)
