import { setTimeout as wait } from 'node:timers/promises'
import { defineAgent } from '@parley/agent'

/** Yields five parts per second. The text starts with the number of parts, and the last one is the process id. */
export default defineAgent({
  name: 'worker',
  description: 'Works',
  concurrency: 2,
  skills: [{ id: 'work', name: 'Work', description: 'Works' }],
  async *handle({ text, signal }) {
    for (let part = 0; part < Number.parseInt(text, 10); part += 1) {
      await wait(200, undefined, { signal })
      yield `part ${part} `
    }
    yield String(process.pid)
  },
})
