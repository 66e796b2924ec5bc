import { expect, test } from 'vitest'
import { failoverRun, wrongIn } from './run.ts'

test('an agent is killed under load: no acknowledged task is lost, none is done twice, it is set aside and gets work again', async () => {
  const said: string[] = []
  const options = { seed: 3, seconds: 3, rate: 10, say: (text: string) => said.push(text) }
  const figures = await failoverRun(options)
  // With what came before, for whoever reads a failure.
  expect({ wrong: wrongIn(figures), said }).toEqual({ wrong: [], said })
  const { sent, told, refused, unsettled, kills } = figures
  expect(kills.length).toBeGreaterThan(0)
  expect(sent).toBe(told.length + [...refused.values()].flat().length + unsettled.length)
}, 600_000) // A bound against hanging: what stands still is found out, and said, before.
