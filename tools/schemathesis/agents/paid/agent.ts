import { defineAgent } from '@parley/agent'

/** Ends each task immediately, so that no request waits. */
export default defineAgent({
  name: 'paid',
  description: 'Repeats a text for test money',
  executionCost: {
    amount: '0.01',
    asset: '0x036CbD53842c5426634e7929541eC2318f3dCF7e',
    network: 'eip155:84532',
    payTo: '0x000000000000000000000000000000000000dEaD',
    decimals: 6,
    extra: { name: 'USDC', version: '2' },
  },
  skills: [
    {
      id: 'repeat',
      name: 'Repeat',
      description: 'Repeats the text of a message',
      tags: ['text'],
      inputModes: ['text/plain', 'application/json'],
      outputModes: ['text/plain'],
      documentation: '# Repeat',
    },
  ],
  handle: ({ text }) => text || 'nothing',
})
