import { setTimeout as wait } from 'node:timers/promises'
import { defineAgent } from '@parley/agent'

export default defineAgent({
  name: 'researcher',
  description: 'Collects facts about a subject and names its sources',
  skills: [
    {
      id: 'research',
      name: 'Research a subject',
      description: 'Collects facts about a subject from the library',
      tags: ['facts', 'research'],
      examples: ['Research facts about the history of tea'],
    },
  ],
  async *handle({ text, signal }) {
    for (const piece of [
      'Three facts ',
      `on "${text}": `,
      'it is old, ',
      'it is well known, ',
      'and it is liked.',
    ]) {
      await wait(60, undefined, { signal })
      yield piece
    }
  },
})
