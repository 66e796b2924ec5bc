import { defineAgent } from '../../../shared/handler/define-agent.ts'

/** The least work a handler can do: what is measured is the house around it. */
export default defineAgent({
  name: 'echo',
  description: 'Says what you say',
  skills: [{ id: 'echo', name: 'Echo', description: 'Repeats a text', tags: ['text'] }],
  handle: ({ text }) => text,
})
