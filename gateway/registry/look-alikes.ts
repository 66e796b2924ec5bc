import unhomoglyph from 'unhomoglyph'
import { ParleyError } from '../../shared/jsonrpc/errors.ts'
import { stemOf, wordsIn } from '../../shared/negotiation/words/split.ts'
import type { AgentEntry } from './entry.ts'

/** Cards that share this much of the smaller one are near-identical. */
const sharedMin = 0.8
/** A card that says less than this is not compared. */
const featuresMin = 12
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

function looksLike(names: ReadonlySet<string>, features: ReadonlySet<string>, other: AgentEntry) {
  for (const name of namesOf(other)) if (names.has(name)) return 'name' as const
  const theirs = featuresOf(other)
  const least = Math.min(features.size, theirs.size)
  if (least < featuresMin) return undefined
  let shared = 0
  for (const feature of theirs) if (features.has(feature)) shared += 1
  return shared >= sharedMin * least ? ('card' as const) : undefined
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

const kept = new WeakMap<Shown['skills'], { description: string; features: ReadonlySet<string> }>()

/** Stems, and pairs of neighbouring ones within a text, so that two texts about one subject are not taken for copies. */
function featuresOf({ description, skills }: Shown): ReadonlySet<string> {
  const known = kept.get(skills)
  if (known?.description === description) return known.features
  const features = new Set<string>()
  const texts = [description, ...skills.flatMap(({ name, description: text, tags }) => [name, text, ...tags])]
  for (const text of texts) {
    if (features.size > wordsMax) break
    const stems = wordsIn(text, wordsMax).map(stemOf)
    stems.forEach((stem, at) => {
      features.add(stem)
      if (at > 0) features.add(`${stems[at - 1]} ${stem}`)
    })
  }
  kept.set(skills, { description, features })
  return features
}
