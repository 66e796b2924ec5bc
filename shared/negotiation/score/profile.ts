import { joinedWords } from '../words/joined.ts'
import { type Meaning, meaningOf } from '../words/meaning.ts'
import { particularsOf } from '../words/names.ts'
import { isStopWord, stemOf, wordsIn } from '../words/split.ts'
import { textsInEnglish } from './english-texts.ts'
import type { Offer, OfferedSkill } from './offer.ts'

/** The words of one skill together with those of its agent, or the words of all skills. */
export interface Unit {
  /** Absent for the agent as a whole. */
  skill?: OfferedSkill
  /** Maps each stem to its importance for the unit, 0..1. */
  impacts: ReadonlyMap<string, number>
  /** Absent if no word is English. */
  meaning: Meaning | undefined
}

export interface Profile {
  units: readonly Unit[]
}

/** Weights of the fields. */
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
/** The maximum number of times that a word counts in one field. */
const repeatsMax = 3
const fieldWordsMax = 1000
const skillsMax = 500

type Counts = Map<string, number>
const kept = new WeakMap<readonly OfferedSkill[], { name: string; description: string; profile: Profile }>()

/** Returns an offer's profile, cached by its list of skills. */
export function profileOf({ name = '', description = '', skills }: Offer): Profile {
  const known = kept.get(skills)
  if (known !== undefined && known.name === name && known.description === description) return known.profile
  const profile = readProfile(name, description, skills.slice(0, skillsMax))
  kept.set(skills, { name, description, profile })
  return profile
}

function readProfile(name: string, description: string, skills: readonly OfferedSkill[]): Profile {
  const agent: Counts = new Map()
  const english = textsInEnglish({ name, description, skills })
  count(agent, english.name, fieldWeights.agentName)
  count(agent, english.description, fieldWeights.agentText)
  const counted = english.skills.map((skill) => countsOf(skill))
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

/** Removes names and numbers from an example, because they say nothing about the skill. */
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

/**
 * BM25F: the more words there are, the less each one counts, so keyword stuffing does not help. 32 bits, as in the
 * index.
 */
function impactsOf(counts: Counts): Map<string, number> {
  let length = 0
  for (const value of counts.values()) length += value
  const slope = saturation * (1 - lengthShare + (lengthShare * length) / usualLength)
  const impacts = new Map<string, number>()
  for (const [stem, value] of counts) impacts.set(stem, Math.fround(value / (value + slope)))
  return impacts
}
