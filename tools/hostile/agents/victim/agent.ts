import { setTimeout as wait } from 'node:timers/promises'
import { defineAgent } from '@parley/agent'

/** Holds the tasks that the hostile agent wants to read and cancel. */
export default defineAgent({
  name: 'victim',
  description: 'Keeps notes',
  skills: [{ id: 'note', name: 'Keep a note', description: 'Keeps a note and repeats it on request' }],
  capabilities: { pushNotifications: true },
  async handle({ text, signal }) {
    if (text.startsWith('wait')) await wait(600_000, undefined, { signal })
    return `Noted: ${text}`
  },
})
