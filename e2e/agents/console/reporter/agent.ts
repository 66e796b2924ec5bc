import { defineAgent } from '@parley/agent'

/** Takes test money. A message with the word "broken" fails after its payment. */
export default defineAgent({
  name: 'reporter',
  description: 'Writes a market report for a small price',
  executionCost: {
    amount: '0.01',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    network: 'eip155:84532',
    payTo: '0x1111111111111111111111111111111111111111',
    extra: { name: 'USDC', version: '2' },
  },
  skills: [
    { id: 'report', name: 'Market report', description: 'Writes a report about a market', tags: ['report'] },
  ],
  handle({ text }) {
    if (text.includes('broken')) throw new Error('The source of the market data is not available')
    return `Report on ${text}: prices are stable.`
  },
})
