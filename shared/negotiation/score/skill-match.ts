import { likeness } from '../words/meaning.ts'
import { contains, writtenWords } from '../words/written-words.ts'
import { logOdds, probability, soleAgent } from './calibration.ts'
import { massOf, meaningEvidence, ownEvidence, rarity, wordEvidence, wordScale } from './evidence.ts'
import type { Knowledge } from './knowledge.ts'
import { expectedEvidence, withLearned } from './learning.ts'
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

/**
 * The probability that the agent can do what the query asks for, 0..1, by its best skill or by all skills together. 0 if neither its
 * texts nor its past work say anything about the query.
 */
export function skillMatch(profile: Profile, query: Query, knowledge: Knowledge): number {
  return probability(oddsOf(ownOf(profile, query, knowledge), query, knowledge))
}

/** The evidence of the agent's own texts (`ownEvidence`), 0 if there is none. */
export function ownOf({ units }: Profile, query: Query, knowledge: Knowledge): number {
  const mass = massOf(query, knowledge)
  let words = 0
  for (const unit of units) words = Math.max(words, wordsOf(unit, query, knowledge, mass))
  return ownEvidence(words, bestNearness(knowledge), knowledge.background ?? 0, wordScale(mass))
}

/** The logarithm of the odds for the evidence of an agent's own texts. Increases with `own`. */
export function oddsOf(own: number, query: Query, knowledge: Knowledge): number {
  const { nearness: near, learned, registry = soleAgent } = knowledge
  const past = learned?.(query)
  const evidence = past === undefined ? own : withLearned(own, past)
  if (near === undefined && evidence <= 0) return Number.NEGATIVE_INFINITY
  const general = past === undefined ? 0 : (1 - registry.trained) * expectedEvidence(past)
  return logOdds(evidence - general, near !== undefined, registry)
}

function bestNearness({ nearness: near }: Knowledge): number | undefined {
  if (near === undefined) return undefined
  let best = -1
  for (const value of near) best = Math.max(best, value)
  return best
}

/** Word evidence of a unit, including the overall similarity. */
function wordsOf(unit: Unit, query: Query, knowledge: Knowledge, mass: number): number {
  const words = wordEvidence(unit, query, knowledge)
  return words + meaningEvidence(unit, query, mass, words)
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
      const score = rounded(skillOdds(unit, at, query, knowledge, mass))
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

/** The probability that the skill alone can do it, without past work. */
function skillOdds(unit: Unit, at: number, query: Query, knowledge: Knowledge, mass: number): number {
  const { nearness: near, background = 0, registry = soleAgent } = knowledge
  const own = ownEvidence(wordsOf(unit, query, knowledge, mass), near?.[at], background, wordScale(mass))
  if (near === undefined && own <= 0) return 0
  return probability(logOdds(own, near !== undefined, registry))
}

/** The words that speak for a skill, and how near its meaning is. */
function reasonsOf(
  { impacts, meaning }: Unit,
  at: number,
  query: Query,
  knowledge: Knowledge,
  card: () => ReadonlyMap<string, string>,
): string[] {
  const { terms, meaning: wanted, written } = query
  const best = terms
    .map((term) => bestWord(term, impacts, knowledge))
    .filter((found) => found !== undefined)
    .sort((a, b) => b.value - a.value)
  const least = (best[0]?.value ?? 0) * tellingShare
  const telling = best.filter(({ value }) => value >= least).slice(0, namedWordsMax)
  const pairs = telling.flatMap(({ term, word }) => {
    const [asked, offered] = [written().get(term.stem), card().get(word)]
    return asked === undefined ? [] : [{ asked, offered, isSame: isSame(term.stem, word, asked, offered) }]
  })
  // Two English words may stand for one of another language.
  const named = new Set(
    pairs.flatMap(({ asked, offered, isSame: same }) => {
      if (same) return quoted(asked)
      return offered === undefined ? [] : `${quoted(offered)} for ${quoted(asked)}`
    }),
  )
  const near = knowledge.nearness?.[at]
  const isAlike = best.length > 0 && likeness(meaning, wanted) >= likenessMin
  return [
    ...(named.size > 0 ? [`it mentions ${listed([...named])}`] : []),
    ...(near !== undefined && near >= nearMin
      ? [`its meaning is close to the request (${near.toFixed(2)})`]
      : []),
    ...(near === undefined && isAlike ? ['the request as a whole is similar'] : []),
  ]
}

/** Whether the skill has the word of the request itself, rather than a related word or one of another language. */
function isSame(stem: string, word: string, asked: string, offered: string | undefined): boolean {
  if (word !== stem) return false
  if (offered === undefined || asked.toLowerCase() === offered.toLowerCase()) return true
  return contains(asked, stem) && contains(offered, stem)
}

/** Words that count less than this fraction of the best one are not named. */
const tellingShare = 0.25
/** Unrelated skills have a nearness below this value. */
const nearMin = 0.4

const quoted = (word: string) => `“${word}”`

const listed = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`

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
