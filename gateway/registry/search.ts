import type { ListedSkill } from '@parley/wire/codecs/parley/skills'
import type { AgentEntry, AgentStatus } from './entry.ts'

export interface AgentQuery {
  /** Words that must all occur in the name, description or skills. */
  q?: string
  /** The id or name of a skill. */
  skill?: string
  tag?: string
  status?: AgentStatus
}

/** Filters the entries, ignoring case and preserving their order. */
export function searchAgents(entries: readonly AgentEntry[], query: AgentQuery): AgentEntry[] {
  const words = query.q?.toLowerCase().split(/\s+/).filter(Boolean) ?? []
  const skill = query.skill?.toLowerCase()
  const tag = query.tag?.toLowerCase()
  return entries.filter(
    (entry) =>
      (query.status === undefined || entry.status === query.status) &&
      (skill === undefined || entry.skills.some((one) => isNamed(one, skill))) &&
      (tag === undefined || entry.skills.some((one) => one.tags.some((is) => is.toLowerCase() === tag))) &&
      (words.length === 0 || holdsAll(entry, words)),
  )
}

function isNamed(skill: ListedSkill, name: string): boolean {
  return skill.id.toLowerCase() === name || skill.name.toLowerCase() === name
}

function holdsAll(entry: AgentEntry, words: string[]): boolean {
  const skills = entry.skills.flatMap((skill) => [skill.id, skill.name, skill.description, ...skill.tags])
  const text = [entry.slug, entry.name, entry.description, ...skills].join('\n').toLowerCase()
  return words.every((word) => text.includes(word))
}
