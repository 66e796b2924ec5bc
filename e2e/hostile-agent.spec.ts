import { hostileRun } from '@parley/tools/hostile/run'
import { expect, test } from '@playwright/test'

for (const production of [false, true]) {
  test(`an agent gains nothing from what it is sent, ${production ? 'in production' : 'in development'}`, async () => {
    const { requests, attempts, leaked } = await hostileRun({ production })
    expect(requests).toBeGreaterThan(10)
    expect(attempts.length).toBeGreaterThan(40)
    expect(leaked).toEqual([])
    expect(attempts.filter(({ refused }) => !refused)).toEqual([])
  })
}
