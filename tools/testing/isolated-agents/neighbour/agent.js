import { defineAgent } from '@parley/agent'

export default defineAgent({
  name: 'neighbour',
  description: 'An agent with a key and a database that others must not read',
  skills: [
    {
      id: 'echo',
      name: 'echo',
      description: 'echo',
      tags: ['echo'],
      inputModes: ['text/plain'],
      outputModes: ['text/plain'],
    },
  ],
  handle: ({ text }) => text,
})
