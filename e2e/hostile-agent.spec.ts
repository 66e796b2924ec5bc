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
    const webhooks = ['the victim', 'the relayed agent'].map(
      (agent) => `own token: tasks/pushNotificationConfig/set at ${agent} through the gateway`,
    )
    const refused = own.filter((one) => one.refused).map(({ attempt }) => attempt)
    expect(refused).toEqual(production ? webhooks : [])
    expect(attempts.filter(({ refused }) => !refused)).toEqual([])
  })
}
