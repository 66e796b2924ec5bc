import { setTimeout as wait } from 'node:timers/promises'
import { defineAgent } from '@parley/agent'

/** Waits as many milliseconds as the message states, and returns the parties of the call. */
export default defineAgent({
  name: 'last',
  description: 'Ends a chain',
  skills: [
    { id: 'end', name: 'End', description: 'Waits' },
    { id: 'sleep', name: 'Sleep deeply', description: 'Sleeps deeply like a bear in winter' },
  ],
  async handle({ text, signal, caller, onBehalfOf }) {
    await wait(Number(/\d+/.exec(text)?.[0]), undefined, { signal })
    return `last(${text}) for ${onBehalfOf?.id} by ${caller.id}`
  },
})
