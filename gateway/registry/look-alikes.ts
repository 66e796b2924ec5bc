import { isStopWord, stemOf, wordsIn } from '@parley/negotiation/words/split'
import { ParleyError } from '@parley/wire/errors'
import unhomoglyph from 'unhomoglyph'
import type { AgentEntry } from './entry.ts'

/** Cards that share this much of the words and pairs of words of the smaller one are near-identical. */
const sharedMin = 0.8
/** So are cards that share this much of its words, in whatever order. */
const wordsSharedMin = 0.85
/** A card that says less than this is not compared. */
const featuresMin = 10
const wordsMax = 2000
const foundMax = 10

type Shown = Pick<AgentEntry, 'name' | 'description' | 'skills' | 'owner' | 'url'> & { id?: string }

export interface LookAlike {
  agent: string
  because: 'name' | 'card'
}

/** Admitted agents of other owners that the agent could be taken for: by a confusable name (Unicode TR39), or by its card. */
export function lookAlikes(entry: Shown, all: readonly AgentEntry[]): LookAlike[] {
  const names = namesOf(entry)
  const features = featuresOf(entry)
  const found: LookAlike[] = []
  for (const other of all) {
    const isItself = other.id === entry.id || other.url === entry.url || other.owner === entry.owner
    if (isItself || !other.admitted) continue
    const because = looksLike(names, features, other)
    if (because !== undefined) found.push({ agent: other.slug, because })
    if (found.length === foundMax) break
  }
  return found
}

/** An unverified agent that could be taken for another gets no work. @throws ParleyError Conflict */
export function requireDistinct(
  entry: Shown & Pick<AgentEntry, 'verified'>,
  all: readonly AgentEntry[],
): void {
  if (entry.verified) return
  const [first] = lookAlikes(entry, all)
  if (first === undefined) return
  const what =
    first.because === 'name' ? 'The name of the agent looks like that' : 'The card of the agent repeats that'
  throw new ParleyError('Conflict', {
    message: `${what} of agent ${first.agent}. An agent that is not verified cannot be admitted like this: give it a DID and prove its key, or change what it says of itself.`,
    data: { reason: 'look_alike', agent: first.agent, because: first.because },
  })
}

function looksLike(names: ReadonlySet<string>, { words, all }: Features, other: AgentEntry) {
  for (const name of namesOf(other)) if (names.has(name)) return 'name' as const
  const theirs = featuresOf(other)
  const isCopy = share(all, theirs.all) >= sharedMin || share(words, theirs.words) >= wordsSharedMin
  return isCopy ? ('card' as const) : undefined
}

/** How much of the smaller set is in the larger one; 0 where it says too little. */
function share(some: ReadonlySet<string>, others: ReadonlySet<string>): number {
  const [small, large] = some.size <= others.size ? [some, others] : [others, some]
  let shared = 0
  for (const one of small) if (large.has(one)) shared += 1
  return small.size < featuresMin ? 0 : shared / small.size
}

/** Skeletons of the name, without marks, spaces and punctuation: before and after upper and lower case are made one. */
function namesOf({ name }: Pick<Shown, 'name'>): ReadonlySet<string> {
  const plain = name.normalize('NFKD').replace(/\p{M}/gu, '')
  const skeletons = [unhomoglyph(plain).toLowerCase(), unhomoglyph(plain.toLowerCase())]
  const twice = skeletons.map((skeleton) => unhomoglyph(skeleton).toLowerCase())
  return new Set(
    twice.map((skeleton) => skeleton.replace(/[^\p{L}\p{N}]/gu, '')).filter((text) => text !== ''),
  )
}

interface Features {
  /** Stems of the card. */
  words: ReadonlySet<string>
  /** These and the pairs of neighbouring ones within a text, so that texts about one subject are not taken for copies. */
  all: ReadonlySet<string>
}

const kept = new WeakMap<Shown['skills'], { description: string; features: Features }>()

function featuresOf({ description, skills }: Shown): Features {
  const known = kept.get(skills)
  if (known?.description === description) return known.features
  const words = new Set<string>()
  const features = new Set<string>()
  const texts = [description, ...skills.flatMap(({ name, description: text, tags }) => [name, text, ...tags])]
  for (const text of texts) {
    if (features.size > wordsMax) break
    const stems = wordsIn(asSeen(text), wordsMax).map(stemOf)
    stems.forEach((stem, at) => {
      if (!isStopWord(stem)) words.add(stem)
      features.add(stem)
      if (at > 0) features.add(`${stems[at - 1]} ${stem}`)
    })
  }
  const found = { words, all: features }
  kept.set(skills, { description, features: found })
  return found
}

/** The text in one spelling of all that look alike, without marks and invisible characters. */
const asSeen = (text: string): string =>
  unhomoglyph(
    text
      .toLowerCase()
      .normalize('NFKD')
      .replace(/[\p{M}\p{Cf}]/gu, ''),
  )
