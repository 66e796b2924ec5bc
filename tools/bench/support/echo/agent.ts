import { defineAgent } from '@parley/agent'

/** An agent with a minimal handler, to measure the server around it. */
export default defineAgent({
  name: 'echo',
  description: 'Repeats a text',
  skills: [{ id: 'echo', name: 'Echo', description: 'Repeats a text', tags: ['text'] }],
  // A slot stays in use while the disk syncs, and 32 connections keep more than 64 tasks between their two commits.
  concurrency: 256,
  handle: ({ text }) => text,
})
