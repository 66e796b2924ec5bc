import { isStopWord, stemOf, wordsIn } from '@parley/negotiation/words/split'
import { ParleyError } from '@parley/wire/errors'
import unhomoglyph from 'unhomoglyph'
import type { AgentEntry } from './entry.ts'

/** Two cards are near-identical if they share this fraction of the smaller card's words and word pairs. */
const sharedMin = 0.8
/** Two cards are also near-identical if they share this fraction of the smaller card's words in any order. */
const wordsSharedMin = 0.85
/** Cards with fewer features than this are not compared. */
const featuresMin = 10
const wordsMax = 2000
const resultsMax = 10

type Profile = Pick<AgentEntry, 'name' | 'description' | 'skills' | 'owner' | 'url'> & { id?: string }

export interface LookAlike {
  agent: string
  because: 'name' | 'card'
}

/**
 * Returns the admitted agents of other owners that could be mistaken for this one because of a confusable name
 * (Unicode TR39) or a near-identical card.
 */
export function lookAlikes(entry: Profile, all: readonly AgentEntry[]): LookAlike[] {
  const names = namesOf(entry)
  const features = featuresOf(entry)
  const results: LookAlike[] = []
  for (const other of all) {
    const isItself = other.id === entry.id || other.url === entry.url || other.owner === entry.owner
    if (isItself || !other.admitted) continue
    const because = looksLike(names, features, other)
    if (because !== undefined) results.push({ agent: other.slug, because })
    if (results.length === resultsMax) break
  }
  return results
}

/**
 * @param isVisible whether the registrant may see the agent; the error names no other
 * @throws ParleyError Conflict for an unverified agent that resembles another, because it must not get work
 */
export function requireDistinct(
  entry: Profile & Pick<AgentEntry, 'verified'>,
  all: readonly AgentEntry[],
  isVisible: (slug: string) => boolean = () => true,
): void {
  if (entry.verified) return
  const [first] = lookAlikes(entry, all)
  if (first === undefined) return
  const what =
    first.because === 'name'
      ? 'The name of the agent is confusable with that'
      : 'The card of the agent is nearly identical to that'
  const isNamed = isVisible(first.agent)
  throw new ParleyError('Conflict', {
    message: `${what} of ${isNamed ? `agent ${first.agent}` : 'another agent'}. An unverified agent cannot be admitted like this: give it a DID and prove its key (or sign the card of a foreign agent), or change its name and card.`,
    data: { reason: 'look_alike', ...(isNamed && { agent: first.agent }), because: first.because },
  })
}

function looksLike(names: ReadonlySet<string>, { words, all }: Features, other: AgentEntry) {
  for (const name of namesOf(other)) if (names.has(name)) return 'name' as const
  const theirs = featuresOf(other)
  const isCopy = share(all, theirs.all) >= sharedMin || share(words, theirs.words) >= wordsSharedMin
  return isCopy ? ('card' as const) : undefined
}

/** Returns the fraction of the smaller set contained in the larger one, or 0 if the smaller set is too small. */
function share(some: ReadonlySet<string>, others: ReadonlySet<string>): number {
  const [small, large] = some.size <= others.size ? [some, others] : [others, some]
  let shared = 0
  for (const one of small) if (large.has(one)) shared += 1
  return small.size < featuresMin ? 0 : shared / small.size
}

/** Returns the name's confusable skeletons without marks, spaces or punctuation, with and without lowercasing. */
function namesOf({ name }: Pick<Profile, 'name'>): ReadonlySet<string> {
  const plain = name.normalize('NFKD').replace(/\p{M}/gu, '')
  const skeletons = [unhomoglyph(plain).toLowerCase(), unhomoglyph(plain.toLowerCase())]
  const twice = skeletons.map((skeleton) => unhomoglyph(skeleton).toLowerCase())
  return new Set(
    twice.map((skeleton) => skeleton.replace(/[^\p{L}\p{N}]/gu, '')).filter((text) => text !== ''),
  )
}

interface Features {
  /** The word stems of the card. */
  words: ReadonlySet<string>
  /** Word stems and pairs of adjacent stems, so that texts about the same subject do not count as copies. */
  all: ReadonlySet<string>
}

const featureCache = new WeakMap<Profile['skills'], { description: string; features: Features }>()

function featuresOf({ description, skills }: Profile): Features {
  const known = featureCache.get(skills)
  if (known?.description === description) return known.features
  const words = new Set<string>()
  const features = new Set<string>()
  const texts = [description, ...skills.flatMap(({ name, description: text, tags }) => [name, text, ...tags])]
  for (const text of texts) {
    if (features.size > wordsMax) break
    const stems = wordsIn(canonicalText(text), wordsMax).map(stemOf)
    stems.forEach((stem, at) => {
      if (!isStopWord(stem)) words.add(stem)
      features.add(stem)
      if (at > 0) features.add(`${stems[at - 1]} ${stem}`)
    })
  }
  const results = { words, all: features }
  featureCache.set(skills, { description, features: results })
  return results
}

/** Maps confusable characters to one form and removes marks and invisible characters. */
const canonicalText = (text: string): string =>
  unhomoglyph(
    text
      .toLowerCase()
      .normalize('NFKD')
      .replace(/[\p{M}\p{Cf}]/gu, ''),
  )
