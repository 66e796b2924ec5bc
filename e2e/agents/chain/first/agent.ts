import { defineAgent } from '@parley/agent'

export default defineAgent({
  name: 'first',
  description: 'Starts a chain',
  skills: [{ id: 'start', name: 'Start', description: 'Calls the agent middle' }],
  handle: async ({ text, agents }) => `first: ${(await agents.call('middle', text)).text}`,
})
