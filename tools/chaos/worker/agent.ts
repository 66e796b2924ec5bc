import { defineAgent, type Output } from '@parley/agent'

const longMs = 120_000

/** The first word of the text selects the behaviour: `soon`, `slow`, `hang` (until canceled) or `ask`. */
export default defineAgent({
  name: 'worker',
  description: 'Carries out orders at different speeds',
  concurrency: 8,
  skills: [
    {
      id: 'order',
      name: 'Order',
      description: 'Carries out an order, fast or slow, and asks questions',
      tags: ['order', 'soon', 'slow', 'ask', 'hang'],
    },
    {
      id: 'paid-order',
      name: 'Paid order',
      description: 'Carries out an order for money',
      tags: ['order', 'paid'],
      executionCost: {
        amount: '0.01',
        asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
        network: 'eip155:84532',
        payTo: '0x1111111111111111111111111111111111111111',
        extra: { name: 'USDC', version: '2' },
      },
    },
  ],
  async *handle({ text, signal, ask, history }): AsyncGenerator<Output> {
    const kind = text.split(' ')[0]
    if (kind === 'ask' && history.length === 1) {
      yield ask('go on?')
      return
    }
    await pause(kind === 'hang' ? longMs : kind === 'slow' ? 2000 : 50 + Math.random() * 200, signal)
    yield String(process.pid)
  },
})

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
