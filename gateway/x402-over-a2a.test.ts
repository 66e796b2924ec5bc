import { type TestAgent, testAgent } from '@parley/agent/testing'
import { A2aPayer } from '@parley/tools/testing/a2a-payer'
import { encoded, price } from '@parley/tools/testing/paid-agent'
import { describe, expect, test } from 'vitest'
import { gateway, gatewayForEachTest, identityProvider } from './testing.ts'

gatewayForEachTest()

const weather = 'Weather forecast for any city'
const [payTo, payToOther] = ['1', '2'].map((digit) => `0x${digit.repeat(40)}`) as [string, string]

/** Starts a paid agent and registers it with the gateway. */
async function paidAgent(name: string, to: string): Promise<TestAgent> {
  const one = await testAgent(
    {
      name,
      executionCost: { ...price, payTo: to },
      handle: ({ text, history }) => `${name} did ${text} of ${history.length}`,
    },
    { identityProvider: identityProvider(), env: { GATEWAY_URL: gateway().addresses.public } },
  )
  const card = await (await fetch(`${one.url}/.well-known/agent.json`)).json()
  const skill = { id: 'a', name: 'a', description: weather, tags: [] }
  const skills = [{ ...skill, input_modes: ['text/plain'], output_modes: ['text/plain'] }]
  await gateway().registry.register({
    name,
    description: weather,
    url: one.url,
    card: card as never,
    skills: skills as never,
    owner: name,
    origin: 'supervised',
    verified: true,
    admitted: true,
    admittedBy: 'supervisor',
  })
  return one
}

const statesOf = (one: TestAgent) => one.app.services.store.payments.countPaymentsByState()

describe.each(['1.0', '0.3'] as const)('A2A %s', (version) => {
  const payerAt = (path: string, name = 'alice') =>
    new A2aPayer({ url: `${gateway().addresses.public}${path}` }, identityProvider().issue(name), version)
  const completed = { state: 'completed', metadata: { 'x402.payment.status': 'payment-completed' } }

  test('a payment at the address of an agent goes to that agent', async () => {
    await using sky = await paidAgent('sky', payTo)
    const alice = payerAt('/agents/sky')
    const asked = await alice.send('weather forecast')
    expect(asked.task.metadata).toMatchObject({
      'x402.payment.status': 'payment-required',
      'x402.payment.required': { accepts: [{ payTo }] },
    })
    const { task } = await alice.pay(asked.task.id)
    expect(task).toMatchObject({
      ...completed,
      artifacts: [{ parts: [{ text: 'sky did weather forecast of 1' }] }],
    })
    await expect.poll(() => statesOf(sky)).toEqual({ earned: 1 })
  })

  test("at the gateway's own address, a payment goes to the agent of the task", async () => {
    await using sky = await paidAgent('sky', payTo)
    await using skyline = await paidAgent('skyline', payToOther)
    const alice = payerAt('')
    const asked = await alice.send('weather forecast')
    const chosen = asked.headers.get('x-agent')
    const accepts = { sky: payTo, skyline: payToOther }[chosen ?? '']
    expect(asked.task.metadata['x402.payment.required']).toMatchObject({ accepts: [{ payTo: accepts }] })
    const payment = await alice.wallet.pay({ payTo: accepts as string })
    const paid = await alice.pay(asked.task.id, payment)
    expect(paid.task).toMatchObject(completed)
    expect(paid.headers.get('x-agent')).toBe(chosen)
    const again = await alice.pay(asked.task.id, payment)
    expect(again.task).toMatchObject(completed)
    const [asker, other] = chosen === 'sky' ? [sky, skyline] : [skyline, sky]
    await expect.poll(() => statesOf(asker)).toEqual({ earned: 1 })
    expect(await statesOf(other)).toEqual({})
    const mallory = await payerAt('', 'mallory').pay(asked.task.id)
    expect(mallory.error?.code).toBe(-32001)
  })

  test('a payment in the first message goes only to the agent that it pays', async () => {
    await using sky = await paidAgent('sky', payTo)
    await using skyline = await paidAgent('skyline', payToOther)
    const alice = payerAt('')
    for (const [one, to] of [
      [sky, payTo],
      [skyline, payToOther],
    ] as const) {
      const payload = await alice.wallet.pay({ payTo: to })
      const metadata = { 'x402.payment.status': 'payment-submitted', 'x402.payment.payload': payload }
      expect((await alice.send('weather forecast', { metadata })).task).toMatchObject(completed)
      await expect.poll(() => statesOf(one)).toEqual({ earned: 1 })
    }
    const header = { 'x-payment': encoded(await alice.wallet.pay({ payTo })) }
    const answer = await alice.send('weather forecast', {}, header)
    expect(answer.task).toMatchObject(completed)
    expect(answer.headers.get('payment-response')).not.toBeNull()
    const unknown = { 'x402.payment.payload': await alice.wallet.pay({ payTo: `0x${'3'.repeat(40)}` }) }
    const refused = await alice.send('weather forecast', { metadata: unknown })
    expect(refused.error?.message).toContain('belongs to no agent')
  })
})
