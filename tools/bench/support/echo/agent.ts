import { defineAgent } from '@parley/agent'

/** The least work a handler can do: what is measured is the house around it. */
export default defineAgent({
  name: 'echo',
  description: 'Says what you say',
  skills: [{ id: 'echo', name: 'Echo', description: 'Repeats a text', tags: ['text'] }],
  // A place is held while the disk is waited for; 32 connections keep more than 64 tasks between their two commits.
  concurrency: 256,
  handle: ({ text }) => text,
})
