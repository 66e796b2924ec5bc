import { likeness } from '../words/meaning.ts'
import { writtenWords } from '../words/written-words.ts'
import {
  learnedEvidence,
  massOf,
  matchOf,
  meaningEvidence,
  nearnessEvidence,
  ownEvidence,
  rarity,
  wordEvidence,
} from './evidence.ts'
import type { Knowledge } from './knowledge.ts'
import type { OfferedSkill } from './offer.ts'
import type { Profile, Unit } from './profile.ts'
import type { Query, Term } from './query.ts'
import { rounded } from './weights.ts'

export interface SkillMatch {
  skillId: string
  skillName: string
  /** Between 0 and 1, with at most 4 decimals. */
  score: number
  reasons: string[]
}

const namedSkillsMax = 20
const namedWordsMax = 5
/** Unrelated texts have a similarity below this value. */
const likenessMin = 0.3

/** How well the agent matches the query, 0..1, by its best skill or by all skills together. */
export function skillMatch({ units }: Profile, query: Query, knowledge: Knowledge): number {
  const mass = massOf(query, knowledge)
  let best = 0
  for (let at = 0; at < units.length; at += 1) {
    best = Math.max(best, unitEvidence(units[at] as Unit, at, query, knowledge, mass))
  }
  const own = ownEvidence(best, query, knowledge, mass)
  return matchOf(own + learnedEvidence(query, knowledge, mass), mass)
}

/** The agent's texts, which count for each of its skills. */
interface AgentTexts {
  name?: string
  description?: string
}

/** Returns up to 20 matching skills, best first. */
export function skillMatches(
  { units }: Profile,
  query: Query,
  knowledge: Knowledge,
  agent: AgentTexts = {},
): SkillMatch[] {
  const mass = massOf(query, knowledge)
  return units
    .flatMap((unit, at) => {
      const { skill } = unit
      if (skill === undefined) return []
      const score = rounded(matchOf(unitEvidence(unit, at, query, knowledge, mass), mass))
      return score > 0 ? [{ unit, at, score, skill }] : []
    })
    .sort((a, b) => b.score - a.score || (a.skill.id < b.skill.id ? -1 : 1))
    .slice(0, namedSkillsMax)
    .map(({ unit, at, score, skill }) => ({
      skillId: skill.id,
      skillName: skill.name,
      score,
      reasons: reasonsOf(unit, at, query, knowledge, () => wordsOfCard(skill, agent)),
    }))
}

function unitEvidence(unit: Unit, at: number, query: Query, knowledge: Knowledge, mass: number): number {
  const words = wordEvidence(unit, query, knowledge)
  return words + meaningEvidence(unit, query, mass, words) + nearnessEvidence(knowledge.nearness?.[at], mass)
}

function reasonsOf(
  { impacts, meaning }: Unit,
  at: number,
  { terms, meaning: wanted, written }: Query,
  knowledge: Knowledge,
  card: () => ReadonlyMap<string, string>,
): string[] {
  const said = terms
    .map((term) => bestWord(term, impacts, knowledge))
    .filter((best) => best !== undefined)
    .sort((a, b) => b.value - a.value)
    .slice(0, namedWordsMax)
  const asked = ({ stem }: Term) => written().get(stem) ?? stem
  const same = said.filter(({ term, word }) => word === term.stem).map(({ term }) => asked(term))
  const alike = said
    .filter(({ term, word }) => word !== term.stem)
    .map(({ term, word }) => [asked(term), card().get(word)].filter((one) => one !== undefined).join(' ~ '))
  const alikeAsWhole = likeness(meaning, wanted)
  const near = knowledge.nearness?.[at] ?? 0
  return [
    ...(same.length > 0 ? [`words in common: ${same.join(', ')}`] : []),
    ...(alike.length > 0 ? [`related: ${alike.join(', ')}`] : []),
    ...(said.length > 0 && alikeAsWhole >= likenessMin
      ? [`similar as a whole (${alikeAsWhole.toFixed(2)})`]
      : []),
    ...(near > 0.5 ? [`similar in meaning (${near.toFixed(2)})`] : []),
  ]
}

/** Returns the word that matches the term best; in most cases there is none. */
function bestWord(term: Term, impacts: ReadonlyMap<string, number>, knowledge: Knowledge) {
  let word = term.stem
  let value = term.weight * (impacts.get(word) ?? 0) * rarity(word, knowledge)
  for (const [other, share] of term.related) {
    const impact = impacts.get(other)
    if (impact === undefined) continue
    const said = term.weight * share * impact * rarity(other, knowledge)
    if (said <= value) continue
    word = other
    value = said
  }
  return value > 0 ? { term, word, value } : undefined
}

const cardCharsMax = 4000
const cardWords = new WeakMap<OfferedSkill, ReadonlyMap<string, string>>()

/** The words of a skill and its agent as the card writes them. */
function wordsOfCard(skill: OfferedSkill, { name, description }: AgentTexts): ReadonlyMap<string, string> {
  const known = cardWords.get(skill)
  if (known !== undefined) return known
  const { tags, examples, assessment } = skill
  const lists = [...tags, ...assessment.keywords, ...assessment.specializations, ...examples]
  const texts = [skill.name, skill.description, ...lists, name, description]
  const words = writtenWords(texts.join('\n'), cardCharsMax)
  cardWords.set(skill, words)
  return words
}
