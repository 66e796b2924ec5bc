import { defineAgent } from '@parley/agent'

/** Ends each task immediately, so that no request waits. */
export default defineAgent({
  name: 'quick',
  description: 'Repeats a text',
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
