import { defineAgent } from '@parley/agent'

/** The `echo` agent with a price in test money. */
export default defineAgent({
  name: 'paid echo',
  description: 'Repeats a text for a price',
  skills: [{ id: 'echo', name: 'Echo', description: 'Repeats a text', tags: ['text'] }],
  concurrency: 256,
  executionCost: {
    amount: '0.000001',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    network: 'eip155:84532',
    payTo: '0x000000000000000000000000000000000000dEaD',
    extra: { name: 'USDC', version: '2' },
  },
  handle: ({ text }) => text,
})
