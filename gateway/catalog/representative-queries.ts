import { skillFacts } from '@parley/wire/codecs/parley/skills'
import type { AgentEntry } from '../registry/entry.ts'
import { cleanLines } from './clean-lines.ts'

const [queriesMin, queriesMax] = [2, 5]
const queryMaxChars = 200
/** The skills that are read. A card can list 1,000. */
const skillsMax = 50

/**
 * Returns 2 to 5 requests that the agent serves: the examples of its skills, at first one of each skill, then names and
 * descriptions if there are fewer than two examples. Undefined if there are still fewer.
 */
export function representativeQueries({
  name,
  description,
  skills,
}: Pick<AgentEntry, 'name' | 'description' | 'skills'>): string[] | undefined {
  const read = skills.slice(0, skillsMax)
  const examples = cleanLines(inTurn(read.map((skill) => skillFacts(skill).examples)), queryMaxChars)
  if (examples.length >= queriesMin) return examples.slice(0, queriesMax)
  const described = [...read, { name, description }].flatMap((one) => [
    firstSentence(one.description),
    one.name,
  ])
  const queries = cleanLines([...examples, ...described], queryMaxChars).slice(0, queriesMax)
  return queries.length < queriesMin ? undefined : queries
}

/** Returns the first item of each list, then the second of each, and so on. */
function inTurn(lists: readonly (readonly string[])[]): string[] {
  return Array.from({ length: queriesMax }, (_, at) => lists.flatMap((list) => list[at] ?? [])).flat()
}

function firstSentence(text: string): string {
  return /^[^.!?\n]{1,400}/.exec(text.trimStart())?.[0] ?? ''
}
