import { defineAgent } from '@parley/agent'

export default defineAgent({
  name: 'hello',
  description: 'Greets',
  skills: [{ id: 'greet', name: 'Greet', description: 'Greets people by their name' }],
  handle: ({ text }) => `Hello, ${text}`,
})
