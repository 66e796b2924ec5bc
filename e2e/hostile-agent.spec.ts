import { hostileRun } from '@parley/tools/hostile/run'
import { expect, test } from '@playwright/test'

for (const production of [false, true]) {
  test(`an agent gains nothing from what it is sent, ${production ? 'in production' : 'in development'}`, async () => {
    const { requests, attempts, own, leaked } = await hostileRun({ production })
    expect(requests).toBeGreaterThan(10)
    expect(attempts.length).toBeGreaterThan(40)
    expect(attempts.filter(({ attempt }) => attempt.includes(', delegated: ')).length).toBeGreaterThan(20)
    expect(leaked).toEqual([])
    // The caller's own requests are accepted, except that in production a webhook needs a public address.
    const webhook = 'own token: tasks/pushNotificationConfig/set at the victim through the gateway'
    const refused = own.filter((one) => one.refused).map(({ attempt }) => attempt)
    expect(refused).toEqual(production ? [webhook] : [])
    expect(attempts.filter(({ refused }) => !refused)).toEqual([])
  })
}
