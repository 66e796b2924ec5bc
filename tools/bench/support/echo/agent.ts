import { defineAgent } from '@parley/agent'

/** A minimal handler, to measure the server around it. */
export default defineAgent({
  name: 'echo',
  description: 'Repeats a text',
  skills: [{ id: 'echo', name: 'Echo', description: 'Repeats a text', tags: ['text'] }],
  // A slot stays taken while the disk syncs: 32 connections keep more than 64 tasks between their two commits.
  concurrency: 256,
  handle: ({ text }) => text,
})
