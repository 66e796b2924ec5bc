import type { OfferedSkill } from './offer.ts'

export interface SkillMatch {
  skillId: string
  skillName: string
  /** Share of the task's words that the skill's own texts hold, 0..1. */
  score: number
  reasons: string[]
}

const stopWords = new Set(
  'a an and are as at be by can do for from give has have how i in is it me my of on or our please that the this to was we what which will with you your'.split(
    ' ',
  ),
)
const wordsMax = 10_000

/** Skills that share words with the task, best first. */
export function skillMatches(skills: readonly OfferedSkill[], task: string): SkillMatch[] {
  const asked = new Set(wordsOf(task))
  return skills
    .map((skill) => matchOf(skill, asked))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score || (a.skillId < b.skillId ? -1 : 1))
}

function matchOf(skill: OfferedSkill, asked: ReadonlySet<string>): SkillMatch {
  const { name, description, tags, examples, assessment } = skill
  const own = new Set(wordsOf([name, description, ...tags, ...examples, ...assessment.keywords].join(' ')))
  const shared = [...asked].filter((word) => own.has(word))
  const score = asked.size === 0 ? 0 : Math.round((shared.length / asked.size) * 10_000) / 10_000
  return {
    skillId: skill.id,
    skillName: name,
    score,
    reasons: shared.length === 0 ? [] : [`words in common: ${shared.slice(0, 5).join(', ')}`],
  }
}

function wordsOf(text: string): string[] {
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  return words
    .slice(0, wordsMax)
    .filter((word) => !stopWords.has(word))
    .map(bare)
}

/** The plural counts as the word. */
const bare = (word: string) =>
  word.length > 3 && word.endsWith('s') && !word.endsWith('ss') ? word.slice(0, -1) : word
