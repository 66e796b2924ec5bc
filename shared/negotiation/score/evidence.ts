import { likeness } from '../words/meaning.ts'
import type { Knowledge } from './knowledge.ts'
import { defaultRarity } from './knowledge.ts'
import type { Unit } from './profile.ts'
import { type Query, type Term, termsMax } from './query.ts'

/** Weight of the overall similarity of two texts, as a fraction of the mass. */
export const meaningWeight = 0.1
/** The weight of words next to nearness, and the power of the mass to which their evidence is relative. */
const wordsWeight = 0.4
const massPower = 0.7
/** The fraction of the background that is subtracted, because some requests are near to every skill. */
const backgroundShare = 0.6
/** How far a good example raises the nearness of its skill. */
const examplesShare = 0.5

/** The last result (see `queryOf`). */
let last: { query: Query; rarityOf: Knowledge['rarityOf']; mass: number } | undefined

/** The maximum word evidence for the query, to which matches are relative. */
export function massOf(query: Query, knowledge: Knowledge): number {
  const { rarityOf } = knowledge
  if (last?.query === query && last.rarityOf === rarityOf) return last.mass
  const mass = readMass(query, knowledge)
  last = { query, rarityOf, mass }
  return mass
}

function readMass({ terms }: Query, knowledge: Knowledge): number {
  let mass = 0
  for (const { stem, weight } of terms) mass += weight * rarity(stem, knowledge)
  return mass
}

/** The best match of each query word. Allocated once, because a ranking evaluates hundreds of units. */
const best = new Float64Array(termsMax)

/** A unit's word evidence, in which each query word counts by its best match. */
export function wordEvidence({ impacts }: Unit, { terms, answers }: Query, knowledge: Knowledge): number {
  best.fill(0, 0, terms.length)
  // Uses `forEach`, because an iterator allocates a pair for each entry.
  if (impacts.size < answers.size) {
    impacts.forEach((impact, stem) => {
      const found = answers.get(stem)
      if (found !== undefined) answer(found, impact * rarity(stem, knowledge))
    })
  } else {
    answers.forEach((found, stem) => {
      const impact = impacts.get(stem)
      if (impact !== undefined) answer(found, impact * rarity(stem, knowledge))
    })
  }
  let sum = 0
  for (let at = 0; at < terms.length; at += 1) sum += (terms[at] as Term).weight * (best[at] ?? 0)
  return sum
}

function answer(found: readonly (readonly [number, number])[], value: number): void {
  for (let at = 0; at < found.length; at += 1) {
    const one = found[at] as readonly [number, number]
    const said = one[1] * value
    if (said > (best[one[0]] as number)) best[one[0]] = said
  }
}

/** Overall similarity of the query and the unit. It only adds to word evidence. */
export function meaningEvidence({ meaning }: Unit, query: Query, mass: number, words: number): number {
  if (words === 0) return 0
  return boundedByWords(meaningWeight * mass * likeness(meaning, query.meaning), words)
}

/** Similarity counts for at most twice the word evidence, so without a common word it counts for nothing. */
export const boundedByWords = (direction: number, words: number): number => Math.min(direction, 2 * words)

/** The weight of word evidence next to nearness, for queries of this mass. */
export const wordScale = (mass: number): number => (mass <= 0 ? 0 : wordsWeight / mass ** massPower)

/**
 * How near a skill is to a request, from cosines. An example counts only if it is nearer than the other texts.
 * @param text of the request with the skill's name and description
 * @param example with the best of the skill's examples
 * @param agent with the description of the agent
 */
export function nearness(text: number, example: number | undefined, agent: number | undefined): number {
  const near = agent === undefined ? text : (text + agent) / 2
  return example === undefined || example <= near ? near : near + examplesShare * (example - near)
}

/**
 * The evidence of an agent's own texts: the best words and the best meaning of its skills.
 * @param scale `wordScale` of the query's mass
 */
export const ownEvidence = (
  words: number,
  near: number | undefined,
  background: number,
  scale: number,
): number => scale * words + (near === undefined ? 0 : near - backgroundShare * background)

export const rarity = (stem: string, { rarityOf }: Knowledge): number => rarityOf?.(stem) ?? defaultRarity
