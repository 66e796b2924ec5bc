import { defineAgent } from '@parley/agent'
import { price } from '@parley/tools/testing/paid-agent'

/** Sells archive space. The hostile agent tries to open payment sessions and to read payments here. */
export default defineAgent({
  name: 'paid',
  description: 'Archives records',
  skills: [{ id: 'archive', name: 'Archive records', description: 'Archives records for years' }],
  executionCost: price,
  handle: ({ text }) => `Archived: ${text}`,
})
