import { hostileRun } from '@parley/tools/hostile/run'
import { expect } from '@playwright/test'
import { test } from './backends.ts'

test.skip(({ store }) => store === 'full', 'the run starts a deployment on the embedded store')

for (const production of [false, true]) {
  test(`an agent gains nothing from what it is sent, ${production ? 'in production' : 'in development'}`, async () => {
    const { requests, attempts, leaked } = await hostileRun({ production })
    expect(requests).toBeGreaterThan(10)
    expect(attempts.length).toBeGreaterThan(40)
    expect(leaked).toEqual([])
    expect(attempts.filter(({ refused }) => !refused)).toEqual([])
  })
}
