import { defineAgent } from '@parley/agent'

export default defineAgent({
  name: 'editor',
  description: 'Corrects a text in the tone that you choose',
  skills: [
    {
      id: 'edit',
      name: 'Edit a text',
      description: 'Corrects spelling and tone of a text',
      tags: ['text', 'language'],
      examples: ['Correct this letter'],
    },
  ],
  handle({ text, history, ask }) {
    if (history.length < 2) return ask('Which tone should the text have: formal or friendly?')
    return `Edited, ${text}.`
  },
})
