import { expect, test } from 'vitest'
import { negotiate } from './negotiate.ts'
import type { OfferedSkill } from './offer.ts'

const skill = (name: string, description: string): OfferedSkill => ({
  id: 'skill',
  name,
  description,
  tags: [],
  inputModes: ['text/plain'],
  outputModes: ['text/plain'],
  examples: [],
  allowedTools: [],
  performance: {},
  assessment: { keywords: [], specializations: [], antiPatterns: [] },
})
const summarizer = skill('Summarize', 'Summarizes an article in a few sentences')
const germanSummarizer = skill('Zusammenfassen', 'Fasst einen Artikel in wenigen Sätzen zusammen')
const weights = { skillMatch: 1, ioCompatibility: 0, performance: 0, load: 0, cost: 0 }

test.each([
  ['English', 'German', summarizer, 'Den Artikel bitte zusammenfassen', '“Summarize” for “zusammenfassen”'],
  ['German', 'English', germanSummarizer, 'summarize the article', '“Zusammenfassen” for “summarize”'],
  ['German', 'German', germanSummarizer, 'Den Artikel bitte zusammenfassen', 'mentions “zusammenfassen”'],
  ['German', 'French', germanSummarizer, "Résumer l'article", '“Zusammenfassen” for “Résumer”'],
  ['English', 'Japanese', summarizer, '記事を要約してください', '“Summarize” for “要約”'],
])('an %s agent is found by a %s request, with the words of both', (_, __, offered, taskSummary, reason) => {
  const poet = skill('Poems', 'Writes poems about the sea')
  const [found, other] = [offered, poet].map((one) =>
    negotiate({ skills: [one], queueDepth: 0 }, { taskSummary, weights }),
  )
  expect(found?.score).toBeGreaterThan(other?.score ?? 1)
  expect(found?.reasons.join('\n')).toContain(reason)
})
