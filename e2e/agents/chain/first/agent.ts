import { defineAgent } from '@parley/agent'

export default defineAgent({
  name: 'first',
  description: 'Starts a chain',
  skills: [{ id: 'start', name: 'Start', description: 'Calls the agent middle' }],
  async handle({ text, agents }) {
    const { text: answer } = text.startsWith('sleep')
      ? await agents.best(text)
      : await agents.call('middle', text)
    return `first: ${answer}`
  },
})
