import { defineAgent } from '@parley/agent'

export default defineAgent({
  name: 'planner',
  description: 'Plans a trip: collects facts about a place and writes a short plan',
  skills: [
    {
      id: 'plan-trip',
      name: 'Plan a trip',
      description: 'Writes a plan for a trip to a town, day by day',
      tags: ['travel', 'plan'],
      examples: ['Plan a weekend in Lisbon'],
    },
  ],
  async *handle({ text, agents }) {
    const [facts, food] = await Promise.all([
      agents.call('researcher', `facts about: ${text}`),
      agents.call('researcher', `food in: ${text}`),
    ])
    yield `# ${text}\n\n${facts.text}\n\n| day | plan |\n|---|---|\n| 1 | Old town on foot |\n| 2 | The river by boat |\n\n${food.text}`
  },
})
