import { readFileSync } from 'node:fs'
import { defineAgent } from '@parley/agent'
import { lengthInput, lengthWishOf } from './length-wish.ts'
import { sourceOf } from './sources.ts'
import { summarize } from './summarize.ts'

export default defineAgent({
  name: 'summarizer',
  description:
    'Summarizes long texts: articles, reports, minutes, letters, transcripts and the results of other tasks, in as many sentences, words or bullet points as you like. Quotes the sentences that matter most, in many languages, and never invents any.',
  version: '1.0.0',
  concurrency: 8,
  deadlineMs: 60_000,
  skills: [
    {
      id: 'summarize',
      name: 'Summarize text',
      description:
        'Makes a short summary of a long text: picks the sentences that say most and repeat least, word for word and in the order of the text. Reads the message, text and Markdown files, and referenced tasks.',
      version: '1.0.0',
      tags: [
        'summary',
        'summarize',
        'summarization',
        'text',
        'tl;dr',
        'extractive',
        'multilingual',
        'key points',
        'reading',
      ],
      inputModes: ['text/plain', 'text/markdown', 'application/json'],
      outputModes: ['text/plain'],
      examples: [
        'Sum this up in two sentences: …',
        'Give me the key points of the attached meeting minutes.',
        'TL;DR of this article, please.',
        'Shorten this report to about 100 words.',
        'What does this long text say, in brief?',
        'Fasse den Text in drei Sätzen zusammen: …',
        'Résume cet article en deux phrases : …',
      ],
      input: lengthInput,
      capabilitiesDetail: {
        method: 'extractive (LexRank with maximal marginal relevance)',
        languages: 'every language whose sentences and words Unicode can segment; stop words of about 60',
        streaming: 'sentence by sentence',
        max_input_bytes: 2_097_152,
        length: 'sentences, words, percent or bullet points, in words or as data {sentences, words, bullets}',
      },
      performance: { avgProcessingTimeMs: 60 },
      allowedTools: ['text-summarization'],
      assessment: {
        keywords: [
          'summarize',
          'summary',
          'sum up',
          'summarise',
          'shorten',
          'condense',
          'abstract',
          'digest',
          'gist',
          'key points',
          'main points',
          'takeaways',
          'tl;dr',
          'brief',
          'overview of a text',
          'zusammenfassen',
          'résumer',
          'resumir',
          'riassumere',
        ],
        specializations: ['long articles', 'meeting minutes', 'reports', 'results of other tasks'],
        antiPatterns: [
          'translate a text',
          'answer a question about facts',
          'write a new text',
          'statistics of numbers',
          'sum of numbers',
          'read a PDF or an image',
        ],
      },
      documentation: readFileSync(new URL('summarize.md', import.meta.url), 'utf8'),
    },
  ],
  async *handle(context) {
    const source = sourceOf(context)
    if (source.kind === 'refused') return context.decline(source.reason)
    if (source.kind === 'none') return context.ask('Which text shall I sum up?')
    const wish = { ...lengthWishOf(source.instruction), ...lengthInput.parse(context.data) }
    let said = false
    for await (const piece of summarize(source.text, { wish, signal: context.signal })) {
      said = true
      yield piece
    }
    if (!said) return context.decline('There is no sentence in that text.')
    return undefined
  },
})
