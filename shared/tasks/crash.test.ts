import { expect, test } from 'vitest'
import { crashRun } from '../testing/crash-run.ts'

test('kill -9 under load: no acknowledged task is lost, none works for ever, no event number is missing or double, the database opens', async () => {
  const figures = await crashRun({ kills: 3, clients: 4, say: () => {} })
  expect(figures).toMatchObject({ kills: 3, lost: 0, stuck: 0, badEvents: 0, doubled: 0 })
  expect(figures.accepted).toBeGreaterThan(0)
  expect(figures.completed).toBeGreaterThan(0)
}, 60_000)
