import { expect, test } from 'vitest'
import { failoverRun, wrongIn } from './run.ts'

test('with a killed agent under load no acknowledged task is lost or done twice; the agent is ejected and gets work again', async () => {
  const said: string[] = []
  const options = { seed: 3, seconds: 3, rate: 10, say: (text: string) => said.push(text) }
  const figures = await failoverRun(options)
  // The progress messages help to read a failure.
  expect({ wrong: wrongIn(figures), said }).toEqual({ wrong: [], said })
  const { sent, told, refused, unsettled, kills } = figures
  expect(kills.length).toBeGreaterThan(0)
  expect(sent).toBe(told.length + [...refused.values()].flat().length + unsettled.length)
}, 600_000) // A bound against hanging: what stands still is found out, and said, before.
