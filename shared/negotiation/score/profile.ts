import { joinedWords } from '../words/joined.ts'
import { type Meaning, meaningOf } from '../words/meaning.ts'
import { particularsOf } from '../words/names.ts'
import { isStopWord, stemOf, wordsIn } from '../words/split.ts'
import type { Offer, OfferedSkill } from './offer.ts'

/** The words of one skill together with those of its agent; or those of all its skills. */
export interface Unit {
  /** Absent: the agent as a whole. */
  skill?: OfferedSkill
  /** Stem → how much the unit is about it, 0..1. */
  impacts: ReadonlyMap<string, number>
  /** Absent where none of the words is English. */
  meaning: Meaning | undefined
}

export interface Profile {
  units: readonly Unit[]
}

/** How much a word counts by where it stands. */
const fieldWeights = {
  agentName: 1,
  agentText: 1,
  name: 1,
  description: 1,
  tags: 1.5,
  keywords: 1.5,
  examples: 1,
}
const saturation = 2
const lengthShare = 0.4
const usualLength = 10
/** A word that is said again counts again at most so often in one field. */
const repeatsMax = 3
const fieldWordsMax = 1000
const skillsMax = 500

type Counts = Map<string, number>
const kept = new WeakMap<readonly OfferedSkill[], { name: string; description: string; profile: Profile }>()

/** Reads the texts of an offer once, as long as its list of skills is the same. */
export function profileOf({ name = '', description = '', skills }: Offer): Profile {
  const known = kept.get(skills)
  if (known !== undefined && known.name === name && known.description === description) return known.profile
  const profile = readProfile(name, description, skills.slice(0, skillsMax))
  kept.set(skills, { name, description, profile })
  return profile
}

function readProfile(name: string, description: string, skills: readonly OfferedSkill[]): Profile {
  const agent: Counts = new Map()
  count(agent, name, fieldWeights.agentName)
  count(agent, description, fieldWeights.agentText)
  const counted = skills.map((skill) => countsOf(skill))
  const units: Unit[] = counted.map((counts, at) => ({
    skill: skills[at] as OfferedSkill,
    ...read(merged([agent, counts])),
  }))
  if (skills.length > 1) units.push(read(merged([agent, ...counted])))
  return { units }
}

const read = (counts: Counts) => ({ impacts: impactsOf(counts), meaning: meaningOf(counts.keys()) })

function countsOf({ name, description, tags, examples, assessment }: OfferedSkill): Counts {
  const counts: Counts = new Map()
  count(counts, name, fieldWeights.name)
  count(counts, description, fieldWeights.description)
  count(counts, tags.join(' . '), fieldWeights.tags)
  count(counts, [...assessment.keywords, ...assessment.specializations].join(' . '), fieldWeights.keywords)
  count(counts, examples.map(withoutParticulars).join(' . '), fieldWeights.examples)
  return counts
}

/** Whose name or which numbers an example happens to hold says nothing about the skill. */
function withoutParticulars(example: string): string {
  const isParticular = particularsOf(example)
  return wordsIn(example, fieldWordsMax)
    .filter((word) => !isParticular(word))
    .join(' ')
}

function count(counts: Counts, text: string, weight: number): void {
  const own: Counts = new Map()
  for (const word of wordsIn(text, fieldWordsMax)) {
    for (const part of [word, ...joinedWords(word)]) {
      if (isStopWord(part)) continue
      const stem = stemOf(part)
      own.set(stem, (own.get(stem) ?? 0) + 1)
    }
  }
  for (const [stem, times] of own) {
    counts.set(stem, (counts.get(stem) ?? 0) + weight * Math.min(times, repeatsMax))
  }
}

function merged(parts: readonly Counts[]): Counts {
  const all: Counts = new Map()
  for (const part of parts) for (const [stem, value] of part) all.set(stem, (all.get(stem) ?? 0) + value)
  return all
}

/** BM25F: the more words, the less each says, so that a text stuffed with words wins nowhere. 32 bits, as an index keeps it. */
function impactsOf(counts: Counts): Map<string, number> {
  let length = 0
  for (const value of counts.values()) length += value
  const slope = saturation * (1 - lengthShare + (lengthShare * length) / usualLength)
  const impacts = new Map<string, number>()
  for (const [stem, value] of counts) impacts.set(stem, Math.fround(value / (value + slope)))
  return impacts
}
