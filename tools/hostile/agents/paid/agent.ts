import { defineAgent } from '@parley/agent'

/** Sells archive space. The hostile agent tries to open payment sessions and to read payments here. */
export default defineAgent({
  name: 'paid',
  description: 'Archives records',
  skills: [{ id: 'archive', name: 'Archive records', description: 'Archives records for years' }],
  executionCost: {
    amount: '0.01',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    network: 'eip155:84532',
    payTo: '0x000000000000000000000000000000000000dEaD',
    decimals: 6,
    extra: { name: 'USDC', version: '2' },
  },
  handle: ({ text }) => `Archived: ${text}`,
})
