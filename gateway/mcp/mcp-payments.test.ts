import { A2aPayer } from '@parley/tools/testing/a2a-payer'
import { price } from '@parley/tools/testing/paid-agent'
import { expect, test } from 'vitest'
import { gateway, gatewayForEachTest, identityProvider } from '../testing.ts'
import { mcpAgent, rpc } from './testing.ts'

gatewayForEachTest()

const payTo = `0x${'1'.repeat(40)}`
const paid = { executionCost: { ...price, payTo } }
const wallet = () =>
  new A2aPayer({ url: gateway().addresses.public }, identityProvider().issue('alice'), '1.0').wallet
const call = async (params: object) => (await rpc('tools/call', { ...params })).json.result

test('a paid tool returns its terms, and the repeated call with the payment returns the result and the receipt', async () => {
  await mcpAgent('weather', ({ text }) => `sunny ${text}`, [{}], paid)
  const tool = { name: 'weather__run', arguments: { text: 'today' } }
  const unpaid = await call(tool)
  expect(unpaid).toMatchObject({
    isError: true,
    structuredContent: { x402Version: 2, accepts: [{ scheme: 'exact', payTo, network: 'eip155:84532' }] },
  })
  expect(JSON.parse(unpaid.content[0].text)).toEqual(unpaid.structuredContent)
  expect(unpaid.content[1].text).toMatch(/http:\/\/\S+\/pay\/\S+ .*payment_session "/)
  const _meta = { 'x402/payment': await wallet().pay({ payTo }) }
  const result = await call({ ...tool, _meta })
  expect(result.content[0]).toEqual({ type: 'text', text: 'sunny today' })
  expect(result._meta['x402/payment-response']).toMatchObject({ success: true })
  const other = { 'x402/payment': await wallet().pay({ payTo: `0x${'2'.repeat(40)}` }) }
  expect(await call({ ...tool, _meta: other })).toMatchObject({ isError: true })
})

test('a task that requests a payment goes on when a payment names it', async () => {
  await mcpAgent(
    'weather',
    ({ requirePayment, task, history }) =>
      history.length === 1
        ? requirePayment({ amount: '0.01', reason: 'more detail' })
        : `detail ${task.starts}`,
    [{}],
    { executionCost: { ...price, amount: '0', payTo } },
  )
  const tool = { name: 'weather__run', arguments: { text: 'today' } }
  const { structuredContent, _meta: meta } = await call(tool)
  expect(structuredContent.resource.url).toBe(`parley://tasks/${meta['parley/task_id']}`)
  const payment = { ...(await wallet().pay({ payTo })), resource: structuredContent.resource }
  const result = await call({ ...tool, _meta: { 'x402/payment': payment } })
  expect(result.content[0].text).toContain('detail')
  expect(result._meta['parley/task_id']).toBe(meta['parley/task_id'])
})
