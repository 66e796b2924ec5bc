import { defineAgent } from '@parley/agent'

/** Calls the agent `last` twice. The first output is the process id. */
export default defineAgent({
  name: 'middle',
  description: 'Continues a chain',
  skills: [{ id: 'continue', name: 'Continue', description: 'Calls the agent last' }],
  async *handle({ text, agents }) {
    yield `${process.pid} `
    const slow = await agents.call('last', text)
    const quick = await agents.call('last', '0')
    yield `middle: ${slow.text}, ${quick.text}`
  },
})
